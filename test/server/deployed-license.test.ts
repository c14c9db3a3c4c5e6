import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { SCRATCH } from '../scratch.ts';
import { newDatabase } from '../storage/databases.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { serveHere } from './running.ts';
import { addTrader, tradingDocument } from './trader.ts';

const PIN = 'A'.repeat(43);

const CLUSTERS = `
trading:
  in_cluster: true
  owner: own
  namespace: bots
  image: registry.example/service-local:1
  control_url: https://service-local.example
`;

let ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

/** Manifests for a bot with a lease, from a server with these variables. */
async function renderedBy(variables: Readonly<Record<string, string>>): Promise<string> {
  const database = await newDatabase('sqlite');
  ends.push(database.remove);
  const storage = await openStorage(database.location);
  const authorization = await addTrader(storage, Date.now());
  await storage.close();
  const directory = await mkdtemp(join(SCRATCH, 'deployed-pin-'));
  ends.push(() => rm(directory, { recursive: true }));
  const [clusters, exchanges] = [join(directory, 'clusters'), join(directory, 'exchanges')];
  await writeFile(clusters, CLUSTERS);
  await writeFile(exchanges, 'binance: { ccxt: binance }\n');
  const server = await serveHere(database, {
    SERVICE_LOCAL_CLUSTERS_FILE: clusters,
    SERVICE_LOCAL_EXCHANGES_FILE: exchanges,
    SERVICE_LOCAL_LICENSE_ENFORCEMENT_ENABLED: 'false',
    SERVICE_LOCAL_LICENSE_REGISTRY_ENFORCED: 'false',
    ...variables,
  });
  ends.push(server.stop);
  const post = async (path: string, body: object): Promise<unknown> => {
    const headers = { authorization, 'content-type': 'application/json' };
    const sent = { method: 'POST', headers, body: JSON.stringify(body) };
    return (await fetch(server.url + path, sent)).json();
  };
  await post('/bots', { document: tradingDocument('sma', 'SPX', '1d', 1) });
  const answer = await post('/bots/sma/deploy', { lease_secret: 'lease', mode: 'render' });
  expect(answer).toMatchObject({ mode: 'render' });
  return (answer as { readonly yaml: string }).yaml;
}

test('the pods of a server with a pinned root pin the same root', async () => {
  expect(await renderedBy({ SERVICE_LICENSE_ROOT: PIN })).toMatch(
    new RegExp(`name: "?SERVICE_LICENSE_ROOT"?\\n\\s+value: "?${PIN}"?\\n`),
  );
});

test('the pods of a server without a pinned root pin none', async () => {
  const yaml = await renderedBy({});
  expect(yaml).toContain('SERVICE_LICENSE_PUBLIC_KEY_PATH');
  expect(yaml).not.toContain('SERVICE_LICENSE_ROOT');
});

test('the pods of a server take its product', async () => {
  expect(await renderedBy({ SERVICE_LOCAL_LICENSE_PRODUCT: 'trader' })).toMatch(
    /name: "?SERVICE_LOCAL_LICENSE_PRODUCT"?\n\s+value: "?trader"?\n/,
  );
});
