import { formatInstant } from '../api/http.ts';
import * as api from '../api/searches.ts';
import type { ErrorData } from '../base/error-data.ts';
import { listEnded, queueShards, type EndedShardRow } from '../fleet/searches/shards.ts';
import {
  deleteSearch,
  listSearches,
  openSearch,
  refuseUnknownSearch,
  storePart,
} from '../fleet/searches/searches.ts';
import { reasonToWait } from '../fleet/searches/search-wait.ts';
import { withNames } from '../identity/actor-names.ts';
import { actorOf } from './authentication.ts';
import { streamEvents } from './event-stream.ts';
import type { App, Services } from './services.ts';

/** Shards that are read at once for a stream, since their results may be large. */
const AT_ONCE = 8;
/** Time without an ended shard after which a stream states why none runs. */
const SILENT_MS = 5000;

export function addSearches(app: App, services: Services): void {
  const { tasks } = services;
  const { read } = tasks.storage;

  app.openapi(api.openSearch, async (c) =>
    c.json(await openSearch(tasks, actorOf(c), c.req.valid('json')), 200),
  );
  app.openapi(api.listSearches, async (c) => {
    const searches = await withNames(read, await listSearches(read), 'created_by');
    const items = searches.map(({ created_at, used_at, ...search }) => ({
      ...search,
      created_at: formatInstant(created_at),
      used_at: formatInstant(used_at),
    }));
    return c.json({ items }, 200);
  });
  app.openapi(api.deleteSearch, async (c) => {
    const isAdmin = c.var.caller!.scopes.has('admin');
    const owner = isAdmin ? undefined : actorOf(c);
    await deleteSearch(tasks, c.req.valid('param').search_id, owner);
    return c.body(null, 204);
  });
  app.openapi(api.storeInput, async (c) => {
    await storePart(tasks, actorOf(c), { ...c.req.valid('param'), ...c.req.valid('json') });
    return c.body(null, 204);
  });
  app.openapi(api.queueShards, async (c) => {
    await queueShards(tasks, actorOf(c), c.req.valid('param').search_id, c.req.valid('json'));
    tasks.wake();
    return c.body(null, 204);
  });
  app.openapi(api.followShards, async (c) => {
    const { search_id } = c.req.valid('param');
    await refuseUnknownSearch(read, search_id);
    await reasonToWait(tasks.storage, tasks.clock(), search_id);
    const last = Number(c.req.valid('header')['last-event-id'] ?? 0);
    return streamEvents(c, services, `search ${search_id}`, () =>
      followEnded(services, search_id, last),
    );
  });
}

async function* followEnded(
  { tasks }: Pick<Services, 'tasks'>,
  search_id: string,
  last: number,
): AsyncGenerator<string | undefined, void> {
  let activeAt = performance.now();
  for (let after = last; ;) {
    const ended = await listEnded(tasks.storage.read, search_id, after, AT_ONCE);
    for (const shard of ended) {
      after = shard.ended_no;
      const data = JSON.stringify(serializeShard(shard));
      yield `id: ${after}\nevent: shard\ndata: ${data}\n\n`;
    }
    if (ended.length > 0) {
      activeAt = performance.now();
      continue;
    }
    await refuseUnknownSearch(tasks.storage.read, search_id);
    if (performance.now() - activeAt > SILENT_MS) {
      activeAt = performance.now();
      const reason = await reasonToWait(tasks.storage, tasks.clock(), search_id);
      if (reason !== undefined) yield `event: waiting\ndata: ${JSON.stringify({ reason })}\n\n`;
    }
    yield undefined;
  }
}

function serializeShard({ shard_id, result, error }: EndedShardRow): api.EndedShard {
  const { message, remedy } = (JSON.parse(error ?? '{}') as Partial<ErrorData>) ?? {};
  return {
    id: shard_id,
    result: result === null ? null : (JSON.parse(result) as api.EndedShard['result']),
    error: error === null ? null : { message: message!, ...(remedy && { remedy }) },
  };
}
