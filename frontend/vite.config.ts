import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Assets live under /static/ so that one web server serves API and dashboard from one origin.
export default defineConfig({
  plugins: [react()],
  base: "/static/",
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
});
