import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LeaseFacts, SeedManifest } from '../../../src/deploy/cloud/manifest.ts';
import { startApiServer, type TestApiServer } from '../kubernetes/api-server.ts';
import { DAY, newCloudWorld, type CloudWorld } from './cloud-world.ts';
import { isAtLength } from '../../length.ts';

const NAMES = ['acme-api', 'acme-worker', 'acme-scheduler'];

let world: CloudWorld;
let server: TestApiServer;
beforeAll(async () => {
  world = await newCloudWorld();
  server = await startApiServer();
  server.addNamespace('acme');
  const definition = {
    kubeconfig: await server.writeKubeconfig(world.directory),
    owner: 'customer',
    namespace: 'acme',
    image: 'example/runner',
    control_url: 'https://bots.example',
  };
  const clusters = join(world.directory, 'clusters.yaml');
  await writeFile(clusters, JSON.stringify({ theirs: definition }));
  Object.assign(world.env, { SERVICE_LOCAL_CLUSTERS_FILE: clusters });
  const [api, worker, scheduler] = NAMES;
  await world.configure({
    license_deployment_id: 'acme-prod',
    store: { type: 'kubernetes', cluster: 'theirs' },
    services: { type: 'kubernetes', api, worker, scheduler },
  });
});
afterAll(async () => {
  await server.close();
  await world.close();
});

function deploy(name: string): void {
  const labels = { app: name };
  server.store.put({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'acme' },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'x' }] } },
    },
  });
}

test.runIf(isAtLength)(
  'seeds a lease into a Secret and redeploys the Deployments that read it',
  async () => {
    const nothing = await world.cloud('redeploy');
    expect(nothing.stderr).toMatch(/^error not_found: there is no Deployment acme-api in the/);
    for (const name of NAMES) deploy(name);

    world.test.now = Date.now() - 6.9 * DAY;
    const first = await world.ask<SeedManifest>(0, 'seed');
    world.test.now = Date.now();
    const secret = server.store.find('Secret', 'acme', 'license.acme.prod') as unknown as {
      data: Record<string, string>;
    };
    expect(Object.keys(secret.data).toSorted()).toEqual(['lease', 'public_key']);
    const text = Buffer.from(secret.data['lease']!, 'base64').toString();
    const { payload } = JSON.parse(text) as { payload: string };
    expect(JSON.parse(Buffer.from(payload, 'base64').toString())).toMatchObject({
      lease_id: first.lease_id,
    });

    const renewed = await world.ask<{ status: string; lease: LeaseFacts }>(0, 'renew');
    expect(renewed).toMatchObject({ status: 'renewed' });
    expect(renewed.lease.lease_id).not.toBe(first.lease_id);
    const redeployed = await world.cloud('redeploy', '--wait');
    expect(redeployed).toMatchObject({ code: 0 });
    expect(redeployed.stderr).toContain('scheduler acme-scheduler: redeployed, 1 of 1 tasks\n');
    expect(await world.ask(0, 'status')).toMatchObject({
      action: 'none',
      act_by: renewed.lease.grace_ends_at,
      services: NAMES.map((name) => ({ name, tasks: { wanted: 1, current: 1 } })),
    });
    expect((await world.cloud('renew')).stdout).toBe('');
    const everything = await world.everything();
    expect(everything).not.toContain(payload);
    expect(everything).not.toContain(secret.data['lease']);
  },
);

test.runIf(isAtLength)('reports pods that do not start and missing permissions', async () => {
  server.kubelet.startsAs = 'crash_loop';
  server.kubelet.exceedDeadline();
  const failed = await world.cloud('redeploy', '--wait');
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('error rollout_failed: the new tasks of acme-api did not start');
  const message = 'deployments.apps "acme-api" is forbidden: User "ci" cannot get resource';
  server.fail({ status: 403, message });
  const refused = await world.cloud('status');
  expect(refused).toMatchObject({ code: 4, stdout: '' });
  expect(refused.stderr).toContain(message);
});

test('cloud iam prints Kubernetes Roles with the least permissions', async () => {
  server.recover();
  const secret = { resources: ['secrets'], resourceNames: ['license.acme.prod'] };
  expect(await world.ask(0, 'iam')).toMatchObject({
    seed: { rules: [{ verbs: ['create'] }, { ...secret, verbs: ['patch'] }] },
    tasks: { rules: [{ ...secret, verbs: ['get'] }] },
    redeploy: {
      rules: [{ resourceNames: NAMES, verbs: ['get', 'patch'] }, { verbs: ['list'] }],
    },
  });
});
