import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vite";

import { nobodyElse } from "./vite.config.ts";

/** What the file may do: run this script, wear this style, show pictures it made itself. Nothing may be fetched, sent or framed. */
function policy(script: string, style: string, more: readonly string[]): string {
  const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  return [
    "default-src 'none'",
    `script-src ${hash(script)}${more.length ? " 'wasm-unsafe-eval' blob:" : ""}`,
    `style-src ${hash(style)}`,
    more.length ? "img-src 'self' data:" : "img-src data:",
    ...more,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

/** Script, style and icon move into the page, and the page says that nothing else may come in. */
export function oneFile(name = "desk.html", more: readonly string[] = []): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let script = "";
      let style = "";
      for (const [part, made] of Object.entries(bundle)) {
        if (made.type === "chunk") script += made.code;
        else if (part.endsWith(".css")) style += text(made.source);
        else continue;
        delete bundle[part];
      }
      const page = bundle[name];
      if (page?.type !== "asset") throw new Error(`vite made no ${name}`);
      script = script.trim().replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--"); // would end or comment out the element
      style = style.trim();
      if (style.includes("</")) throw new Error("the style would end its own element");
      const icon = `data:image/svg+xml,${encodeURIComponent(readFileSync("src/icon.svg", "utf8").trim())}`;
      const html = text(page.source)
        .replace(/\s*<script[^>]*\ssrc=[^>]*><\/script>/, "")
        .replace(/\s*<link[^>]*rel="stylesheet"[^>]*>/, "")
        .replace("%ICON%", () => icon)
        .replace("%POLICY%", () => policy(script, style, more));
      // Functions, for "$&" in a script means something to replace().
      page.source = html
        .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
        .replace("</body>", () => `  <script type="module">${script}</script>\n  </body>`);
    },
  };
}

function text(source: string | Uint8Array): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source);
}

// The lighting desk as one file: inspection fills in a trace, and the file then shows it anywhere, also without a network.
export default defineConfig({
  base: "./",
  plugins: [svelte(), nobodyElse(), oneFile()],
  build: {
    outDir: "../src/limelight/inspection/page",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    rolldownOptions: { input: "desk.html", output: { codeSplitting: false } },
  },
});
