import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { VenueClient } from '../../../src/trading/venues/venue-client.ts';
import { SCRATCH } from '../../scratch.ts';

interface StreamingExchange {
  client(url: string): { onMessage(message: { readonly data: string }): void };
}

test('reports a message of a stream that is not valid JSON', () => {
  const credentialsDir = mkdtempSync(join(SCRATCH, 'service-local-venue-client-'));
  onTestFinished(() => rmSync(credentialsDir, { recursive: true }));
  for (const name of ['apiKey', 'secret']) writeFileSync(join(credentialsDir, name), 'canary');
  const troubles: string[] = [];
  const { exchange } = new VenueClient({
    name: 'local',
    definition: { ccxt: 'binance' },
    credentialsDir,
    deploymentId: 'd',
    symbols: ['BTC/USDT'],
    currency: 'USDT',
    account: 'cash',
    signal: new AbortController().signal,
    onTrouble: (text) => troubles.push(text),
  });
  const stream = (exchange as unknown as StreamingExchange).client('ws://127.0.0.1:1');
  stream.onMessage({ data: '{"e":"executionReport","c":"canary' });
  expect(troubles).toEqual(['local sent a message that is not valid JSON']);
});
