import * as api from '../api/research.ts';
import type { Caller } from '../identity/tokens.ts';
import { LONGEST_FILE, type Ask } from '../research/ask.ts';
import { getDataset, listDatasets } from '../research/datasets.ts';
import { proposeVersion, type Proposal } from '../research/proposals.ts';
import type { TaskService } from '../tasks/tasks.ts';
import { actorOf, asCaller } from './authentication.ts';
import { once } from './once.ts';
import type { App, Services } from './services.ts';

export function addResearch(app: App, services: Services): void {
  const { tasks } = services;

  app.openapi(api.listDatasets, async (c) => {
    const found = await listDatasets(tasks.catalogueDir);
    return c.json({ items: found.map(datasetAnswer) }, 200);
  });
  app.openapi(api.getDataset, async (c) => {
    const found = await getDataset(tasks.catalogueDir, c.req.valid('param').name);
    return c.json(datasetAnswer(found), 200);
  });

  app.openapi(api.proposeVersion, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const propose = (service: TaskService): Promise<Proposal> =>
      proposeVersion(service, actorOf(c), bot_ref, c.req.valid('json'));
    const proposal = await once(c, tasks, propose, ({ changes, ...rest }) => ({
      ...rest,
      changes: changes.map((change) => ({ ...change })),
    }));
    tasks.wake();
    return c.json(proposal, 202);
  });
}

/** Asks the API of this very server as the caller, who comes by no more than he has. */
export function askAs(app: Pick<App, 'request'>, caller: Caller, requestId: string): Ask {
  return async (method, path, body, { signal } = {}) => {
    const answer = await app.request(
      path,
      {
        method,
        headers: {
          'x-request-id': requestId,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      },
      asCaller(caller),
    );
    const text = await textOf(answer);
    const isJson = /json/.test(answer.headers.get('content-type') ?? '');
    return { status: answer.status, json: isJson ? (JSON.parse(text) as unknown) : text };
  };
}

/** Of a file, no more than may be given. */
async function textOf(answer: Response): Promise<string> {
  if (/json/.test(answer.headers.get('content-type') ?? '')) return answer.text();
  let text = '';
  for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.length >= LONGEST_FILE) return text.slice(0, LONGEST_FILE);
  }
  return text;
}

/** Without the file that it came from, which is one of the machine of the server. */
function datasetAnswer(manifest: Awaited<ReturnType<typeof getDataset>>): api.Dataset {
  const { symbol: name, timeframe, rows: bars, from, to, columns, sha256, imported_at } = manifest;
  const has_volume = columns.includes('volume');
  return { name, timeframe, bars, from, to, has_volume, sha256, imported_at };
}
