import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { newDeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import { newTestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

async function faultsOf(document: string): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: {
      'no-invalid-schema-examples': 'error',
      'no-invalid-parameter-examples': 'error',
      'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: false },
      'no-unused-components': 'error',
      'operation-tag-defined': 'error',
    },
  });
  const found = await lintFromString({ source: document, config });
  return found.map(({ ruleId, message, location: [place] }) =>
    [ruleId, place?.pointer, message].join(' '),
  );
}

test.runIf(isAtLength)(
  'the OpenAPI document has no faults, and an introduced fault is found',
  async () => {
    const server = await newTestApp();
    const document = await (await server.app.request('/openapi.json')).text();
    await server.close();
    expect(await faultsOf(document)).toEqual([]);

    const faulty = document
      .replace('"operationId":"getHealth",', '')
      .replace('"example":604800', '"example":"a week"');
    expect(await faultsOf(faulty)).toEqual([
      expect.stringContaining('operation-operationId #/paths/~1healthz'),
      expect.stringContaining('no-invalid-schema-examples #/components/schemas/'),
    ]);
  },
);

interface Part {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly additionalProperties?: unknown;
}

test('no schema of the OpenAPI document combines closed objects, or an object and null, which no value could match', async () => {
  const server = await newTestApp();
  const document = (await (await server.app.request('/openapi.json')).json()) as {
    components: { schemas: Readonly<Record<string, Part>> };
  };
  await server.close();
  const { schemas } = document.components;
  const isClosed = (part: Part): boolean =>
    (part.$ref ? schemas[part.$ref.split('/').at(-1)!]! : part).additionalProperties === false;
  const faults: string[] = [];
  // `JSON.stringify` visits every object of the document.
  JSON.stringify(document, (_key, value: { readonly allOf?: readonly Part[] } | null) => {
    const parts = value?.allOf ?? [];
    const allowsNull = parts.some(({ type }) => type?.includes('null'));
    if (parts.filter(isClosed).length > 1 || allowsNull) faults.push(JSON.stringify(parts));
    return value;
  });
  expect(faults).toEqual([]);
});

test('the OpenAPI document describes every part of a device proof', async () => {
  const server = await newTestApp();
  const document = (await (await server.app.request('/openapi.json')).json()) as {
    components: { securitySchemes: { device: { description: string } } };
  };
  await server.close();
  const { description } = document.components.securitySchemes.device;
  const url = 'https://licenses.example/auth/license/leases';
  const request = { method: 'POST', url, body: Buffer.from('{"renewal_id":"1"}') };
  const proof = makeDeviceProof(newDeviceKey(), request, Date.now(), 'nonce');
  const [header, claims] = proof
    .split('.', 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as object);
  for (const [name, value] of Object.entries({ ...header, kid: '<device_id>' })) {
    expect(description).toContain(`"${name}":"${value}"`);
  }
  for (const name of Object.keys(claims!)) expect(description).toContain(`\`${name}\``);
  const { bh, htu, htm, aud } = claims as Record<string, string>;
  for (const [name, value] of Object.entries({ bh, htu, htm, aud })) {
    expect(description).toContain(`"${name}":"${value}"`);
  }
});
