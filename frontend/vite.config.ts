import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { budget } from "./budget.ts";

// One web server serves API and dashboard from one origin; the names below /assets/ carry a content hash.
export default defineConfig({
  plugins: [react(), budget({ pageBytes: 150_000 })],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { "/api": process.env.ROOTSTOCK_ORIGIN ?? "http://127.0.0.1:8000" } },
});
