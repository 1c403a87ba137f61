/** Fails a build in which opening some page would fetch more script and style than the budget. Knows Rollup's bundle; no page. */
import { gzipSync } from "node:zlib";
import type { Plugin, Rolldown } from "vite";

type Bundle = Rolldown.OutputBundle;

/** The chunk and all that must be there before it runs. */
function closureOf(name: string, bundle: Bundle, found = new Set<string>()): Set<string> {
  const chunk = bundle[name];
  if (!chunk || chunk.type !== "chunk" || found.has(name)) return found;
  found.add(name);
  for (const other of chunk.imports) closureOf(other, bundle, found);
  for (const style of chunk.viteMetadata?.importedCss ?? []) found.add(style);
  return found;
}

function sizeBytes(name: string, bundle: Bundle): number {
  const file = bundle[name];
  if (!file) return 0;
  return gzipSync(file.type === "chunk" ? file.code : file.source, { level: 9 }).length;
}

/** `pageBytes`: the entry with all that one page adds to it, gzipped. Fonts and images are not counted: nothing waits for them. */
export function budget({ pageBytes }: { pageBytes: number }): Plugin {
  return {
    name: "budget",
    enforce: "post",
    generateBundle(_, bundle) {
      const chunks = Object.values(bundle).filter((file) => file.type === "chunk");
      const entry = chunks.find((chunk) => chunk.isEntry);
      if (!entry) this.error("the bundle has no entry");
      for (const page of chunks.filter((chunk) => chunk.isEntry || chunk.isDynamicEntry)) {
        const files = closureOf(page.fileName, bundle, closureOf(entry.fileName, bundle));
        const total = [...files].reduce((sum, name) => sum + sizeBytes(name, bundle), 0);
        if (total > pageBytes) this.error(`opening ${page.name} fetches ${total} bytes of script and style (gzip), more than ${pageBytes}`);
        this.info(`${page.name}: ${total} bytes of ${pageBytes} (gzip)`);
      }
    },
  };
}
