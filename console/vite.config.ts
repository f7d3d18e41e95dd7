// The bundle goes to dist/, from where the server's build takes it. Each text file gets a compressed twin there, so that
// the server compresses nothing while it serves.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const DIST = join(import.meta.dirname, "dist");

const compressedTwins: Plugin = {
  name: "compressed-twins",
  apply: "build",
  closeBundle() {
    for (const name of readdirSync(DIST, { recursive: true, encoding: "utf8" })) {
      if (!/\.(html|js|css|svg)$/.test(name)) continue;
      const path = join(DIST, name);
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
    }
  },
};

/** The folder itself is part of the repository, with a file of its own, so only what was built is taken away. */
const freshFolder: Plugin = {
  name: "fresh-folder",
  apply: "build",
  buildStart() {
    for (const name of readdirSync(DIST)) {
      if (name !== ".gitignore") rmSync(join(DIST, name), { recursive: true });
    }
  },
};

export default defineConfig({
  base: "/console/",
  plugins: [react(), freshFolder, compressedTwins],
  build: {
    emptyOutDir: false,
    // Nothing is put into the page itself: its policy allows files only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8080", "/console/session": "http://127.0.0.1:8080" } },
});
