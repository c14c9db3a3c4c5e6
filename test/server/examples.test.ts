import { makeDeviceProof } from '../../src/client/device-proof.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  DEVICE,
  hasOwnWorld,
  NEW_DEVICE,
  newExampleWorld,
  RUNNER_TOKEN,
  type ExampleWorld,
} from './example-world.ts';
import { newTestApp, PUBLIC_URL } from './in-process.ts';
import { isAtLength } from '../length.ts';

/** The part of OpenAPI that is used here. */
interface Operation {
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, Scope[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: { readonly example?: string | number };
}

interface Content {
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Route {
  readonly method: string;
  readonly path: string;
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, Media> }>>;
}

interface Media {
  readonly schema: z.ZodType;
  readonly examples?: Content['examples'];
}

const { routes, operationOf } = await readApi();

async function readApi() {
  const server = await newTestApp();
  const { body } = await server.send('GET', '/openapi.json');
  await server.close();
  const { paths } = body as { paths: Record<string, Record<string, Operation>> };
  return {
    routes: server.app.openAPIRegistry.definitions.flatMap((one) =>
      one.type === 'route' ? [one.route as unknown as Route] : [],
    ),
    operationOf: ({ path, method }: Route): Operation => paths[path]![method]!,
  };
}

const requests = routes.flatMap((route) => {
  const operation = operationOf(route);
  const bodies = operation.requestBody?.content['application/json']?.examples ?? {
    none: undefined,
  };
  return Object.entries(bodies).map(([name, example]) => ({ route, operation, name, example }));
});

/** World of the operations that only read, and need nothing of their own. */
let shared: Promise<ExampleWorld> | undefined;
afterAll(async () => (await shared)?.close());

// `npm test` requests every fourth example.
test.each(requests.filter((_, index) => isAtLength || index % 4 === 0))(
  'the example of $operation.operationId, $name, succeeds',
  async ({ route, operation, name, example }) => {
    const isShared = route.method === 'get' && !hasOwnWorld(operation.operationId);
    if (isShared) shared ??= newExampleWorld('');
    const world = await (isShared ? shared! : newExampleWorld(operation.operationId));
    try {
      const body = example && Buffer.from(JSON.stringify(example.value));
      const path = pathOf(route, operation);
      const answer = await world.send(route.method.toUpperCase(), path, {
        headers: {
          ...Object.fromEntries(examplesOf(operation, 'header')),
          ...(body && { 'content-type': 'application/json' }),
          ...(await credentials(world, operation, name, { method: route.method, path, body })),
        },
        body,
      });
      expect(answer).toMatchObject({ status: expect.toSatisfy((status) => status < 300) });
      const { content } = route.responses[answer.status]!;
      const schema = content ? Object.values(content)[0]!.schema : z.literal('');
      expect(schema.safeParse(answer.body)).toEqual({ success: true, data: answer.body });
    } finally {
      if (!isShared) await world.close();
    }
  },
);

test('every operation with a body or required parameters has an example of them', () => {
  const without = routes.map(operationOf).filter(({ requestBody, parameters = [] }) => {
    const { examples = {} } = requestBody?.content['application/json'] ?? { examples: { a: 1 } };
    return (
      Object.keys(examples).length === 0 ||
      parameters.some(({ required, schema }) => required && schema.example === undefined)
    );
  });
  expect(without.map(({ operationId }) => operationId)).toEqual([]);
});

test('every example of a response matches its schema', () => {
  for (const { responses } of routes) {
    for (const { content = {} } of Object.values(responses)) {
      for (const { schema, examples = {} } of Object.values(content)) {
        for (const { value } of Object.values(examples)) {
          expect(schema.safeParse(value)).toEqual({ success: true, data: value });
        }
      }
    }
  }
});

function examplesOf(operation: Operation, place: Parameter['in']): [name: string, value: string][] {
  return (operation.parameters ?? []).flatMap(({ name, in: where, schema: { example } }) =>
    where === place && example !== undefined ? [[name, String(example)]] : [],
  );
}

function pathOf({ path }: Route, operation: Operation): string {
  const inPath = new Map(examplesOf(operation, 'path'));
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => inPath.get(name)!);
  return `${filled}?${new URLSearchParams(examplesOf(operation, 'query'))}`;
}

/** Credentials of the caller after whom the example is named, else of the first permitted caller. */
async function credentials(
  world: ExampleWorld,
  { security }: Operation,
  name: string,
  { method, path, body }: { method: string; path: string; body: Uint8Array | undefined },
): Promise<{ authorization?: string }> {
  const [scheme, scopes] = Object.entries(
    security.find((one) => Object.hasOwn(one, name)) ?? security[0] ?? {},
  )[0] ?? ['anybody', []];
  if (scheme === 'anybody') return {};
  if (scheme === 'runner') return { authorization: `Bearer ${RUNNER_TOKEN}` };
  if (scheme === 'administrator')
    return { authorization: `Bearer ${await world.token(...scopes)}` };
  const proof = makeDeviceProof(
    scheme === 'device' ? DEVICE : NEW_DEVICE,
    { method: method.toUpperCase(), url: PUBLIC_URL + path, body: body ?? new Uint8Array() },
    world.now,
  );
  return { authorization: `DeviceProof ${proof}` };
}
