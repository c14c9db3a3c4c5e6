import { expect, test, vi } from 'vitest';
import type { ChatTurn } from '../../src/api/research.ts';
import { createBot } from '../../src/fleet/registry/bots.ts';
import { CHAT_API_KEY } from '../../src/research/providers.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { startServer, type RunningServer } from '../server/running.ts';
import { addTrader } from '../server/trader.ts';
import { newDatabase } from '../storage/databases.ts';
import { startProvider } from './provider.ts';
import { CANARY, researchDocument } from './talk.ts';

test('a turn whose server was killed is interrupted, and its session continues', async () => {
  const database = await newDatabase('sqlite');
  const provider = await startProvider('openai_compatible');
  provider.replies.push({ say: ['It is'], ending: 'stall' });
  const storage = await openStorage(database.location);
  const authorization = await addTrader(storage, Date.now());
  await createBot({ storage, clock: Date.now, customCode: undefined }, 'operator', {
    document: researchDocument('talk'),
  });
  await storage.close();

  const servers: RunningServer[] = [];
  const start = async (): Promise<RunningServer> => {
    const server = await startServer(database, [], {
      SERVICE_LOCAL_CHAT_PROVIDER: 'openai_compatible',
      SERVICE_LOCAL_CHAT_MODEL: 'm-1',
      SERVICE_LOCAL_CHAT_BASE_URL: provider.url,
      [CHAT_API_KEY]: CANARY,
    });
    servers.push(server);
    return server;
  };
  const ask = (server: RunningServer, body: object, key: string): Promise<Response> =>
    fetch(`${server.url}/bots/talk/chat`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(body),
    });
  try {
    const first = await start();
    const prompt = 'How is it?';
    const lost = ask(first, { prompt }, 'a').catch(() => 'lost');
    await vi.waitFor(() => expect(provider.requests).toHaveLength(1), { timeout: 30_000 });
    await first.kill();
    expect(await lost).toBe('lost');

    const second = await start();
    const list = await fetch(`${second.url}/bots/talk/chat/sessions`, {
      headers: { authorization },
    });
    const { items } = (await list.json()) as { items: { session_id: string }[] };
    const { session_id } = items[0]!;
    const read = await fetch(`${second.url}/bots/talk/chat/sessions/${session_id}`, {
      headers: { authorization },
    });
    expect(await read.json()).toMatchObject({
      items: [{ prompt, status: 'interrupted', error: { reason: 'interrupted' } }],
    });
    // A repeated request returns the outcome without another request to the provider.
    const again = (await (await ask(second, { prompt }, 'a')).json()) as { detail: string };
    expect(again).toMatchObject({ reason: 'interrupted' });
    expect(again.detail).toContain(session_id);
    expect(provider.requests).toHaveLength(1);

    const next = await ask(second, { prompt: 'And now?', session_id }, 'b');
    const turn = (await next.json()) as ChatTurn;
    expect(turn).toMatchObject({ number: 2, status: 'done', answer: 'ok' });
    expect(provider.requests).toHaveLength(2);
    expect(servers.map(({ log }) => log()).join('\n')).not.toContain(CANARY);
  } finally {
    for (const server of servers) await server.kill();
    await provider.close();
    await database.remove();
  }
});
