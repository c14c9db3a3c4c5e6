import type { Client } from '../client/client.ts';
import type { ItemOf, RequestOf, Route } from '../client/route.ts';
import { showItems, type Columns } from './show-items.ts';
import type { Answer } from './verb.ts';

/** Answers with all items of a list on the server, under `name` in the document of `--json`. */
export async function listAnswer<R extends Route>(
  server: Client,
  name: string,
  path: R['path'],
  columns: Columns<ItemOf<R>>,
  request: RequestOf<R>,
): Promise<Answer> {
  const items = await Array.fromAsync(server.items<R>('get', path, request));
  return { data: { [name]: items }, show: (out) => showItems(out, items, columns) };
}
