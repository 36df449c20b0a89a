import "../app.css";

import { mount } from "svelte";

import Local from "./Local.svelte";
import { Translator } from "./translator";

// For scripts of whoever embeds the page. The browser's own global of this name stays as it is.
(globalThis as { limelight?: unknown }).limelight = { Translator };
mount(Local, { target: document.body });
if ("serviceWorker" in navigator && location.protocol.startsWith("http")) void navigator.serviceWorker.register("sw.js").catch(() => {});
