import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { newTestApp } from './in-process.ts';

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

test('the OpenAPI document has no faults, and a fault would be found', async () => {
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
});
