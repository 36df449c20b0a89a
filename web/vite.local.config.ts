import { copyFileSync, renameSync } from "node:fs";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

import { nobodyElse } from "./vite.config.ts";
import { oneFile } from "./vite.single.config.ts";

const OUT = "../src/limelight/interop/web/page";
const WASM = "node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.wasm";
// The page may fetch its models and start the worker that it has verified, and nothing else.
const MORE = ["connect-src 'self' blob: data:", "worker-src 'self' blob:", "manifest-src 'self'"];
const SHARED = { outDir: OUT, target: "es2022", cssTarget: ["chrome123", "firefox121", "safari17.5"] };

// The page that translates without a server, in three parts: the worker as a script of its own, the page of a proof, and the page.
export default defineConfig(({ mode }) => {
  if (mode === "worker")
    return {
      publicDir: "src/local/static",
      plugins: [
        nobodyElse(),
        // Its wasm is handed over by the page, verified; vite would else put a copy into the script for each place that names it.
        {
          name: "no-wasm-inside",
          enforce: "pre",
          transform: (code, id) => (id.includes("onnxruntime-web") ? code.replaceAll("import.meta.url", "self.location.href") : null),
        },
        { name: "runtime", closeBundle: () => copyFileSync(WASM, `${OUT}/ort.wasm`) },
      ],
      build: {
        ...SHARED,
        emptyOutDir: true,
        lib: { entry: "src/local/worker.ts", formats: ["iife"], name: "limelight", fileName: () => "worker.js" },
      },
    };
  const page = mode === "page" ? "local.html" : "prove.html";
  return {
    base: "./",
    publicDir: false,
    plugins: [
      svelte(),
      nobodyElse(),
      oneFile(page, MORE),
      { name: "index", closeBundle: () => mode === "page" && renameSync(`${OUT}/${page}`, `${OUT}/index.html`) },
    ],
    build: {
      ...SHARED,
      emptyOutDir: false,
      cssCodeSplit: false,
      modulePreload: false,
      assetsInlineLimit: Number.MAX_SAFE_INTEGER,
      rolldownOptions: { input: page, output: { codeSplitting: false } },
    },
  };
});
