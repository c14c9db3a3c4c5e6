import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { createContract } from '../../../src/identity/contracts.ts';
import { createCustomer } from '../../../src/identity/customers.ts';
import { createInstallation } from '../../../src/identity/installations.ts';
import { registerSigner } from '../../../src/identity/signing-keys.ts';
import { createPlan } from '../../../src/identity/plans.ts';
import { signerOf } from '../../../src/identity/signing-key.ts';
import { inProcess } from '../../cli/in-process.ts';
import type { Result } from '../../cli/service-local.ts';
import { newTestApp, type TestApp } from '../../server/in-process.ts';

export const DAY = 86_400_000;

/** A server with two customers, and a home directory from which to seed their leases. */
export interface CloudWorld {
  readonly test: TestApp;
  readonly directory: string;
  /** Environment variables for processes that use the server and the home directory. */
  readonly env: Readonly<Record<string, string>>;
  /** Awaited after a lease is issued, before the response. */
  onIssued: () => unknown;
  /** Writes `cloud_file`: the environment `prod` of `acme`. */
  readonly configure: (install: object) => Promise<void>;
  /** Runs `cloud VERB --customer acme --env prod …`. */
  readonly cloud: (verb: string, ...words: string[]) => Promise<Result>;
  /** Runs the verb with `--json`, expects the exit code and parses the output. */
  readonly ask: <T>(code: number, verb: string, ...words: string[]) => Promise<T>;
  /** Makes the server sign with a new key. */
  readonly rotateKey: () => Promise<void>;
  /** IDs of all issued leases, oldest first. */
  readonly issued: () => Promise<string[]>;
  /** The contents of all files and everything printed so far. */
  readonly everything: () => Promise<string>;
  readonly close: () => Promise<void>;
}

export async function newCloudWorld(): Promise<CloudWorld> {
  const test = await newTestApp({ signer: newSigner() });
  test.now = Date.now();
  const { identity } = test.services;
  await registerSigner(identity, identity.signer as ReturnType<typeof newSigner>);
  const vendor = [identity, 'operator'] as const;
  await createPlan(...vendor, { plan_id: 'pro', name: 'Pro', entitlements: ['live_trading'] });
  for (const customer_id of ['acme', 'bolt']) {
    await createCustomer(...vendor, { customer_id, name: customer_id });
    const contract = { contract_id: `${customer_id}-2099`, customer_id, plan_id: 'pro' };
    await createContract(...vendor, { ...contract, ends_at: Date.UTC(2099, 0) });
    const installation = {
      deployment_id: `${customer_id}-prod`,
      contract_id: contract.contract_id,
    };
    await createInstallation(...vendor, { ...installation, name: 'Production' });
  }
  const token = (await test.bearer('license')).replace('Bearer ', '');

  const server = createAdaptorServer({
    async fetch(request: Request) {
      const answer = await test.app.fetch(request);
      if (request.method === 'POST' && request.url.endsWith('/leases')) await world.onIssued();
      return answer;
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const directory = await mkdtemp(join(tmpdir(), 'service-local-cloud-'));
  const printed: string[] = [];
  const world: CloudWorld = {
    test,
    directory,
    env: {
      SERVICE_LOCAL_HOME: join(directory, 'home'),
      SERVICE_LOCAL_CLOUD_FILE: join(directory, 'cloud.yaml'),
      SERVICE_LOCAL_SERVER_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      SERVICE_LOCAL_TOKEN: token,
    },
    onIssued: () => {},
    configure: (install) =>
      writeFile(
        join(directory, 'cloud.yaml'),
        JSON.stringify({ customers: { acme: { prod: install } } }),
      ),
    async cloud(verb, ...words) {
      const which = ['--customer', 'acme', '--env', 'prod'];
      const options = { cwd: directory, env: world.env };
      const result = await inProcess(['cloud', verb, ...which, ...words], options);
      printed.push(result.stdout, result.stderr);
      return result;
    },
    async ask<T>(code: number, verb: string, ...words: string[]) {
      const result = await world.cloud(verb, ...words, '--json');
      if (result.code !== code) {
        throw new Error(`exit code ${result.code}: ${result.stdout}${result.stderr}`);
      }
      return JSON.parse(result.stdout) as T;
    },
    async rotateKey() {
      const signer = newSigner();
      Object.assign(identity, { signer });
      await registerSigner(identity, signer);
    },
    async issued() {
      const { rows } = {
        rows: await identity.storage.read
          .selectFrom('license_leases')
          .select('lease_id')
          .orderBy('lease_id')
          .execute(),
      };
      return rows.map(({ lease_id }) => lease_id);
    },
    async everything() {
      const files = await readdir(directory, { recursive: true, withFileTypes: true });
      const texts = files
        .filter((file) => file.isFile())
        .map((file) => readFile(join(file.parentPath, file.name), 'latin1'));
      return [...printed, ...test.log, ...(await Promise.all(texts))].join('\n');
    },
    async close() {
      server.close();
      if ('closeAllConnections' in server) server.closeAllConnections();
      await test.close();
      await rm(directory, { recursive: true });
    },
  };
  return world;
}

function newSigner() {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
  return signerOf(createPrivateKey(pem));
}
