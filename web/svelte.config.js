import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    // Elements are made one by one and never parsed from text, so that a page may forbid innerHTML altogether (Trusted Types).
    fragments: "tree",
  },
};
