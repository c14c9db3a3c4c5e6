/** The static site of the documentation; its sidebar is the start page, `docs/index.md`. */
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { defineConfig, type DefaultTheme } from 'vitepress';
import { anchor } from '../generator/markdown.ts';

const DOCS = join(import.meta.dirname, '..');
const ROOT = join(DOCS, '..');
/** Files outside of `docs/` that pages link; the site serves them as they are. */
const LINKED = ['examples', 'SECURITY.md', 'CONTRIBUTING.md'];

type Items = DefaultTheme.SidebarItem[];

/** Sections, groups and pages, in the order of the start page. */
function sidebar(): Items {
  const sections: Items = [];
  let group: Items | undefined;
  for (const line of readFileSync(join(DOCS, 'index.md'), 'utf8').split('\n')) {
    const heading = /^## (.+)$/.exec(line)?.[1];
    const bold = /^\*\*(.+)\*\*$/.exec(line)?.[1];
    const link = /^(?:- |\| )\[([^\]]+)\]\(([^)]+)\.md\)/.exec(line);
    if (heading !== undefined) {
      group = [];
      sections.push({ text: heading, items: group });
    } else if (bold !== undefined) {
      group = [];
      sections.push({ text: bold, items: group, collapsed: true });
    } else if (link !== null && group !== undefined) {
      const [, text, path] = link;
      group.push({ text, link: `/${path!.replace(/index$/, '')}`, ...pagesBelow(path!) });
    }
  }
  return sections.filter(({ items = [] }) => items.length > 0);
}

/** The pages beside an index page of the reference. */
function pagesBelow(path: string): { items: Items; collapsed: true } | undefined {
  if (!path.startsWith('reference/') || !path.endsWith('/index')) return undefined;
  const directory = dirname(path);
  const names = readdirSync(join(DOCS, directory))
    .filter((file) => file !== 'index.md')
    .map((file) => file.replace(/\.md$/, ''));
  return {
    items: names.map((name) => ({ text: name, link: `/${directory}/${name}` })),
    collapsed: true,
  };
}

export default defineConfig({
  title: 'service-local',
  description: 'Trading bots in files, backtests to believe, and licenses that work offline.',
  cleanUrls: true,
  srcExclude: ['node_modules/**'],
  markdown: {
    anchor: { slugify: anchor },
    config(md) {
      md.core.ruler.push('links-outside-docs', ({ tokens, env }) => {
        const page = (env as { relativePath: string }).relativePath;
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.type === 'link_open' ? token.attrGet('href') : null;
          if (href === null || !href.startsWith('.')) continue;
          const path = posix.join('docs', posix.dirname(page), href);
          if (path.startsWith('docs/')) continue;
          token.attrSet('href', `/${path}`);
          // VitePress leaves links with a target as they are.
          token.attrSet('target', '_self');
        }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sidebar(),
    outline: [2, 3],
  },
  buildEnd({ outDir }) {
    for (const path of LINKED) cpSync(join(ROOT, path), join(outDir, path), { recursive: true });
  },
});
