import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Svelte's errors point to its web site. Nothing that we serve names another host: the code of the error is enough to find it. */
export function nobodyElse(): Plugin {
  return {
    name: "nobody-else",
    renderChunk: (code) => ({ code: code.replaceAll("https://svelte.dev/e/", "svelte: "), map: null }),
  };
}

// One script and one style sheet with hashed names, which a server may let browsers keep for ever.
export default defineConfig({
  base: "./", // a proxy may put a path before ours
  plugins: [svelte(), nobodyElse()],
  build: {
    outDir: "../src/limelight/serving/page",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox121", "safari17.5"], // these know light-dark()
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 0,
  },
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
  },
});
