import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { botJsonSchema } from '../../src/bots/json-schema.ts';
import { VALID } from './specs.ts';

describe('the JSON Schema', () => {
  // The reader of zod does not support `oneOf: [{required: …}, …]` without properties.
  const isRequiredOnly = (value: unknown): boolean =>
    Array.isArray(value) &&
    value.every((item) => Object.keys(item as object).join() === 'required');
  const readable = JSON.parse(JSON.stringify(botJsonSchema()), (_, value: unknown) =>
    isRequiredOnly(value) ? undefined : value,
  ) as z.core.JSONSchema.JSONSchema;
  const schema = z.fromJSONSchema(readable);
  const accepts = (from: string, to: string): boolean => {
    expect(VALID).toContain(from);
    return schema.safeParse(parse(VALID.replace(from, to))).success;
  };

  it('has a dialect, an id and a title', () => {
    expect(botJsonSchema()).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'urn:service-local:bot:v1',
    });
  });

  it.each([
    ['kind: Bot', 'kind: Bot\n$schema: bot.schema.json'],
    ['params: {fast: 10, slow: 30}', 'params: {fast: 10}'],
    ['{name: sma_crossover, params: {fast: 10, slow: 30}}', '{name: buy_and_hold}'],
    ['{name: sma_crossover, params: {fast: 10, slow: 30}}', '{module: ./a.ts, params: {a: b}}'],
    ['fill: {model: volume_share, limit: 0.1}', 'fill: ohlc_path'],
  ])('accepts %j replaced by %j', (from, to) => {
    expect(accepts(from, to)).toBe(true);
  });

  it.each([
    ['slug: sma-crossover', 'slug: SMA'],
    ['cash: "100000"', 'cash: 100000'],
    ['seed: 7', 'sede: 7'],
    ['from: 2000-01-03', 'from: January'],
    ['name: sma_crossover', 'name: sma_crosover'],
    ['fast: 10', 'fast: 0'],
    ['fast: 10', 'fst: 10'],
    ['name: sma_crossover', 'name: sma_crossover, module: ./a.ts'],
    ['{name: sharpe, min: 0.2}', '{name: sharp, min: 0.2}'],
  ])('rejects %j replaced by %j', (from, to) => {
    expect(accepts(from, to)).toBe(false);
  });

  it('requires exactly one of source and sources', () => {
    const choice = [{ required: ['source'] }, { required: ['sources'] }];
    expect(JSON.stringify(botJsonSchema())).toContain(`"oneOf":${JSON.stringify(choice)}`);
  });

  it('describes the parameters of each built-in strategy', () => {
    const text = JSON.stringify(botJsonSchema());
    expect(text).toContain('"lookback":{"type":"integer","minimum":2,"default":60');
    expect(text).toContain('"description":"Bars in the fast average."');
  });
});
