import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// One web server serves API and dashboard from one origin; the names below /assets/ carry a content hash.
export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
});
