import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openAwsStore } from '../../src/cloud/aws-store.ts';
import { directoryStore } from '../../src/cloud/directory-store.ts';
import { startAwsEmulator } from './aws-emulator.ts';
import { secretStoreContract } from './secret-store-contract.ts';

secretStoreContract('a directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-secrets-'));
  return {
    store: directoryStore(join(directory, 'secrets')),
    keepsPrevious: false,
    close: () => rm(directory, { recursive: true }),
  };
});

const WRITES = ['CreateSecret', 'PutSecretValue'];

secretStoreContract('AWS Secrets Manager', async () => {
  const aws = await startAwsEmulator();
  for (const [name, value] of Object.entries(aws.env)) vi.stubEnv(name, value);
  const store = await openAwsStore({});
  const setDenied = (action: string, isDenied: boolean): unknown =>
    isDenied ? aws.denied.add(action) : aws.denied.delete(action);
  return {
    store,
    keepsPrevious: true,
    loseAnswer: () => aws.faults.push({ actions: WRITES, kind: 'lost' }),
    throttle: () => aws.faults.push({ actions: WRITES, kind: 'throttled' }),
    denyReading: (isDenied) => setDenied('GetSecretValue', isDenied),
    denyWriting: (isDenied) => setDenied('PutSecretValue', isDenied),
    async close() {
      vi.unstubAllEnvs();
      await aws.close();
    },
  };
});
