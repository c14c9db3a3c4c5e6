import { afterEach, beforeEach, expect, test } from 'vitest';
import { DEVICE, newExampleWorld, type ExampleWorld } from './example-world.ts';

let server: ExampleWorld;
beforeEach(async () => {
  server = await newExampleWorld('');
});
afterEach(() => server.close());

/** Lines of one metric, without the common prefix. */
async function metric(name: string): Promise<string[]> {
  const authorization = `Bearer ${await server.token('read')}`;
  const { status, headers, body } = await server.send('GET', '/metrics', {
    headers: { authorization },
  });
  expect({ status, type: headers.get('content-type') }).toEqual({
    status: 200,
    type: 'text/plain; version=0.0.4; charset=utf-8',
  });
  const lines = (body as string).split('\n');
  return lines.flatMap((line) => {
    const prefix = `service_local_${name}`;
    return /^[ {]/.test(line.slice(prefix.length)) && line.startsWith(prefix)
      ? [line.slice(prefix.length).trim()]
      : [];
  });
}

async function issue(body: object): Promise<number> {
  const authorization = `Bearer ${await server.token('license')}`;
  const answer = await server.send('POST', '/auth/license/leases', {
    headers: { authorization },
    body,
  });
  return answer.status;
}

test('requests are counted by method, route and status, with their duration', async () => {
  await server.send('GET', '/identity/customers/acme');
  await server.send('GET', '/identity/customers/bolt');
  await server.send('GET', '/no/such/path');
  expect(await metric('http_request_duration_seconds_count')).toEqual([
    '{method="GET",route="/identity/customers/:customer_id",status="401"} 2',
    '{method="GET",route="none",status="404"} 1',
  ]);
});

test('issued leases are counted, and rejections by code and reason', async () => {
  expect(await issue({ deployment_id: 'acme-tokyo' })).toBe(201);
  expect(await issue({ deployment_id: 'acme-osaka' })).toBe(404);
  expect(await metric('license_leases_issued_total')).toEqual(['1']);
  expect(await metric('license_leases_denied_total')).toEqual(['{code="not_found",reason=""} 1']);
});

test('leases are exported by state, with the age of the key and the number of silent installations', async () => {
  expect(await metric('license_leases')).toEqual([
    '{state="valid"} 1',
    '{state="grace"} 0',
    '{state="expired"} 0',
    '{state="revoked"} 0',
  ]);
  await server.execute(`update license_leases set device_id = '${DEVICE.device_id}'`);
  server.now += 8 * 86_400_000;
  expect(await metric('license_leases')).toContain('{state="grace"} 1');
  expect(await metric('license_silent_deployments')).toEqual(['1']);
  expect(await metric('license_signing_key_age_seconds')).toEqual([String(8 * 86_400)]);
});

test('repeated scrapes return the stored figures', async () => {
  await metric('license_leases');
  expect(await issue({ deployment_id: 'acme-tokyo' })).toBe(201);
  server.now += 59_000;
  expect(await metric('license_leases')).toContain('{state="valid"} 1');
  server.now += 1_000;
  expect(await metric('license_leases')).toContain('{state="valid"} 2');
});

test('without a database, the other metrics are exported, but no stale figures', async () => {
  expect(await metric('license_leases')).toHaveLength(4);
  await server.execute('alter table license_leases rename to gone');
  server.now += 60_000;
  expect(await metric('license_leases')).toEqual([]);
  expect(await metric('license_silent_deployments')).toEqual([]);
  expect(await metric('license_signing_key_age_seconds')).toEqual([]);
  expect(await metric('http_request_duration_seconds_count')).not.toEqual([]);
});

test('rejections before any database access are counted too', async () => {
  const answer = await server.send('POST', '/auth/license/leases', { body: {} });
  expect(answer.status).toBe(401);
  expect(await metric('license_leases_denied_total')).toEqual([
    '{code="not_authenticated",reason="missing_token"} 1',
  ]);
});

test('tasks that have not ended are exported with their age, and halts by scope', async () => {
  await server.execute(`update tasks set ended_at = null, status = 'queued', kind = 'stress',
    created_at = ${server.now - 90_000} where ended_at is not null`);
  const queued = Number(
    (await metric('tasks')).join().match(/kind="stress",status="queued"} (\d+)/)?.[1],
  );
  expect(queued).toBeGreaterThan(0);
  expect(await metric('task_queue_age_seconds')).toContain('{kind="stress"} 90');
  expect(await metric('halts')).toEqual(['{scope="bot"} 0', '{scope="all"} 0']);
  await server.execute(`update tasks set status = 'running', worker_id = 'one', heartbeat_at = ${server.now - 7_000}
    where kind = 'stress'`);
  const authorization = `Bearer ${await server.token('halt')}`;
  const body = { reason: 'the feed is wrong' };
  await server.send('POST', '/bots/halt-all', { headers: { authorization }, body });
  server.now += 5_000;
  expect(await metric('task_heartbeat_age_seconds')).toContain('{kind="stress"} 12');
  expect(await metric('halts')).toContain('{scope="all"} 1');
  expect(await metric('event_streams')).toEqual(['0']);
});

test('the size of the database and the wait of writes are exported', async () => {
  expect(Number((await metric('database_bytes'))[0])).toBeGreaterThan(10_000);
  expect(await metric('database_connections')).toEqual([]);
  const before = Number((await metric('write_wait_seconds_count'))[0]);
  expect(await issue({ deployment_id: 'acme-tokyo' })).toBe(201);
  expect(Number((await metric('write_wait_seconds_count'))[0])).toBeGreaterThan(before);
});

test('metrics require a token', async () => {
  expect(await server.send('GET', '/metrics')).toMatchObject({ status: 401 });
});

test('alerts are counted with their latency, including a halt of all bots', async () => {
  const labels = '{control="halt_all",severity="critical"}';
  const countOf = async (): Promise<number> => {
    const line = (await metric('alerts_total')).find((one) => one.startsWith(labels));
    return Number(line?.slice(labels.length) ?? 0);
  };
  const before = await countOf();
  const authorization = `Bearer ${await server.token('halt')}`;
  const body = { reason: 'the feed is wrong' };
  await server.send('POST', '/bots/halt-all', { headers: { authorization }, body });
  expect(await countOf()).toBe(before + 1);
  const took = await metric('alert_latency_seconds_sum');
  expect(took.some((line) => line.startsWith(labels))).toBe(true);
});

test('a token that has read metrics is rejected once it is revoked', async () => {
  const token = await server.token('read');
  const read = () =>
    server.send('GET', '/metrics', { headers: { authorization: `Bearer ${token}` } });
  expect(await read()).toMatchObject({ status: 200 });
  await server.execute(`update api_tokens set revoked_at = ${server.now}`);
  expect(await read()).toMatchObject({ status: 401 });
  expect(await read()).toMatchObject({ status: 401 });
});
