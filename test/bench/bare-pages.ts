/**
 * The floor that the console is measured against: a Hono server that has all its pages and their files
 * in memory. Reads them as JSON from its standard input, by path: `{headers, body}`. Prints its URL.
 */
import { json } from 'node:stream/consumers';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

export interface BarePage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const pages = (await json(process.stdin)) as Readonly<Record<string, BarePage>>;

const app = new Hono();
app.get('*', (c) => {
  const { pathname, search } = new URL(c.req.url);
  const page = pages[pathname + search];
  return page === undefined ? c.notFound() : c.body(page.body, 200, page.headers);
});
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://localhost:${port}`);
});
