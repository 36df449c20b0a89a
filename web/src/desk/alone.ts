/** The lighting desk in a file of its own, with a trace inside it and nobody to ask. */

import "../app.css";

import { mount } from "svelte";

import Desk from "./Desk.svelte";

mount(Desk, { target: document.body });
