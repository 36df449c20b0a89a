import { existsSync } from "node:fs";

import { defineConfig } from "@playwright/test";

// Against the real server and a browser that is there already: nothing is downloaded.
const PORT = process.env["LIMELIGHT_FLOWS_PORT"] ?? "5867";
const PYTHON = process.env["PYTHON"] ?? (existsSync("../.venv/bin/python") ? "../.venv/bin/python" : "python3");
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "flows",
  timeout: 120_000,
  expect: { timeout: 20_000 },
  workers: 1,
  reporter: "line",
  use: {
    baseURL: `http://127.0.0.1:${PORT}/`,
    viewport: { width: 1280, height: 860 },
    launchOptions: { executablePath: CHROMIUM, args: ["--no-sandbox"] },
    permissions: ["clipboard-read", "clipboard-write"],
  },
  webServer: {
    command: `${PYTHON} flows/serve.py ${PORT}`,
    url: `http://127.0.0.1:${PORT}/readyz`,
    timeout: 120_000,
    reuseExistingServer: false,
    stderr: "ignore", // a line for each request
    gracefulShutdown: { signal: "SIGTERM", timeout: 10_000 },
  },
});
