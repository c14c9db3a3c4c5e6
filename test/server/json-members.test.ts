import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findJsonFault } from '../../src/server/json-members.ts';

/** As `JSON.stringify` on several lines, with an object's first member once more at its end. */
function withDuplicate(value: object): string {
  const [name, first] = Object.entries(value)[0]!;
  const text = JSON.stringify(value, null, 1);
  return `${text.slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(first)}}`;
}

const objects = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { minKeys: 1 });

describe('findJsonFault', () => {
  it('finds no fault in the output of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
        expect(findJsonFault(JSON.stringify(value, null, indent))).toBeUndefined();
      }),
    );
  });

  it('finds a member that is given twice, wherever it is', () => {
    fc.assert(
      fc.property(objects, fc.array(fc.jsonValue()), (value, before) => {
        const text = `[${before.map((item) => `${JSON.stringify(item)},`).join('')}${withDuplicate(value)}]`;
        const step = Object.keys(value)[0]!.replaceAll('~', '~0').replaceAll('/', '~1');
        expect(findJsonFault(text)).toEqual({
          code: 'duplicate_field',
          pointer: `/${before.length}/${step}`,
        });
      }),
    );
  });

  it('terminates for any text', () => {
    const parts = fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', 'a', '"a":', '\\u00');
    fc.assert(
      fc.property(fc.array(parts), (tokens) => {
        const { code } = findJsonFault(tokens.join('')) ?? {};
        expect([undefined, 'duplicate_field', 'nested_too_deep']).toContain(code);
      }),
    );
  });

  it('allows 100 levels', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(findJsonFault(nested(100))).toBeUndefined();
    expect(findJsonFault(nested(101))).toEqual({
      code: 'nested_too_deep',
      pointer: '/0'.repeat(100),
    });
  });
});
