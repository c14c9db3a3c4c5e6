import type { listSearches, Search } from '../../../api/searches.ts';
import { formatActor } from '../../../base/format.ts';
import { defineServerVerb } from '../../server-verb.ts';
import { showItems, type Columns } from '../../show-items.ts';

const COLUMNS: Columns<Search> = {
  search: ({ search_id }) => search_id,
  title: ({ title }) => title,
  by: ({ created_by, created_by_name }) => formatActor(created_by, created_by_name),
  waiting: (search) => (hasShards(search) ? String(search.queued) : 'none sent yet'),
  running: ({ running }) => String(running),
  ended: ({ ended }) => String(ended),
  failed: ({ failed }) => String(failed),
  used: ({ used_at }) => used_at,
};

function hasShards({ queued, running, ended, failed }: Search): boolean {
  return queued + running + ended + failed > 0;
}

export const verb = defineServerVerb({
  summary: 'list the searches on the server',
  description:
    'Lists the sweeps, walk-forward analyses and robustness tests that run with `--on server`, with ' +
    'the number of their shards. Shards that the command has not sent yet, and results that it has ' +
    'received, are not counted.',
  examples: ['searches list'],
  async run(server) {
    const { items } = await server.call<typeof listSearches>('get', '/searches', {});
    return { data: { searches: items }, show: (out) => showItems(out, items, COLUMNS) };
  },
});
