import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readPage, type List, type Page } from '../../src/storage/paging.ts';

/** A page of `ids`, as a database would give it. */
function pageOf(
  ids: readonly string[],
  list: List,
  limit: number,
  cursor?: string,
): Promise<Page<string>> {
  return readPage(
    list,
    { limit, cursor },
    (id) => id,
    async (after, most) =>
      ids
        .filter((id) => after === undefined || id > after)
        .sort()
        .slice(0, most),
  );
}

const LETTERS = ['a', 'b', 'c', 'd', 'e'];

describe('a list in pages', () => {
  test('gives every item once, whatever the size of the pages', async () => {
    const ids = fc.uniqueArray(fc.stringMatching(/^[!-~]{1,128}$/), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(ids, fc.integer({ min: 1, max: 25 }), async (all, limit) => {
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await pageOf(all, ['letters'], limit, cursor);
          expect(page.items.length).toBeLessThanOrEqual(limit);
          seen.push(...page.items);
          cursor = page.next_cursor ?? undefined;
        } while (cursor !== undefined);
        expect(seen).toEqual([...all].sort());
      }),
    );
  });

  test('goes on behind the last item seen, also when that one is gone', async () => {
    const { next_cursor } = await pageOf(LETTERS, ['letters'], 2);
    expect(next_cursor).toMatch(/^[\w-]+$/);
    const later = ['0', 'a', 'c', 'd'];
    expect((await pageOf(later, ['letters'], 2, next_cursor!)).items).toEqual(['c', 'd']);
  });

  test('says that there is no next page as soon as it knows', async () => {
    expect(await pageOf(LETTERS, ['letters'], 5)).toEqual({ items: LETTERS, next_cursor: null });
    expect(await pageOf([], ['letters'], 5)).toEqual({ items: [], next_cursor: null });
  });
});

describe('a cursor that is none of the list', async () => {
  const list: List = ['letters', 'vowels'];
  const { next_cursor } = await pageOf(LETTERS, list, 2);
  const cursor = next_cursor!;
  const { next_cursor: zero } = await pageOf(['a\0', 'b'], list, 1);

  test.each<[string, List, string]>([
    ['of another list', ['numbers', 'vowels'], cursor],
    ['of another filter', ['letters', 'consonants'], cursor],
    ['of no filter', ['letters'], cursor],
    ['of the filter in another place', ['letters', undefined, 'vowels'], cursor],
    ['cut short', list, cursor.slice(0, -1)],
    ['with something behind it', list, `${cursor}A`],
    ['padded', list, `${cursor}=`],
    ['empty', list, ''],
    ['made up', list, 'bm9uc2Vuc2U'],
    ['with what no id has', list, zero!],
  ])('%s is refused', async (_, other, text) => {
    await expect(pageOf(LETTERS, other, 2, text)).rejects.toMatchObject({
      code: 'invalid_request',
      remedy: expect.stringContaining('no cursor') as string,
    });
  });
});
