import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findJsonFault } from '../../src/lease/json.ts';

/** Returns the JSON of an object with its first member repeated at the end. */
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
        expect(findJsonFault(JSON.stringify(value, null, indent), 100)).toBeUndefined();
      }),
    );
  });

  it('finds a member that is given twice, wherever it is', () => {
    fc.assert(
      fc.property(objects, fc.array(fc.jsonValue()), (value, before) => {
        const text = `[${before.map((item) => `${JSON.stringify(item)},`).join('')}${withDuplicate(value)}]`;
        const step = Object.keys(value)[0]!.replaceAll('~', '~0').replaceAll('/', '~1');
        expect(findJsonFault(text, 100)).toEqual({
          kind: 'duplicate_member',
          name: Object.keys(value)[0],
          pointer: `/${before.length}/${step}`,
        });
      }),
    );
  });

  it('terminates for any text', () => {
    const parts = fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', 'a', '"a":', '\\u00');
    fc.assert(
      fc.property(fc.array(parts), (tokens) => {
        const { kind } = findJsonFault(tokens.join(''), 100) ?? {};
        expect([undefined, 'duplicate_member', 'nested_too_deep']).toContain(kind);
      }),
    );
  });

  it('allows as many levels as its caller, and no more', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(findJsonFault(nested(100), 100)).toBeUndefined();
    expect(findJsonFault(nested(101), 100)).toEqual({
      kind: 'nested_too_deep',
      pointer: '/0'.repeat(100),
    });
  });
});
