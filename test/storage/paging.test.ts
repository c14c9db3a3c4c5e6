import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readPage, type List, type Page } from '../../src/storage/paging.ts';

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
  test('every item of a list is on one page, whatever the size of the pages', async () => {
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

  test('a page continues after the last item of the previous page, even if that item was removed', async () => {
    const { next_cursor } = await pageOf(LETTERS, ['letters'], 2);
    expect(next_cursor).toMatch(/^[\w-]+$/);
    const later = ['0', 'a', 'c', 'd'];
    expect((await pageOf(later, ['letters'], 2, next_cursor!)).items).toEqual(['c', 'd']);
  });

  test('the last page has no cursor', async () => {
    expect(await pageOf(LETTERS, ['letters'], 5)).toEqual({ items: LETTERS, next_cursor: null });
    expect(await pageOf([], ['letters'], 5)).toEqual({ items: [], next_cursor: null });
  });
});

describe('an invalid cursor', async () => {
  const list: List = ['letters', 'vowels'];
  const { next_cursor } = await pageOf(LETTERS, list, 2);
  const cursor = next_cursor!;
  const { next_cursor: zero } = await pageOf(['a\0', 'b'], list, 1);

  test.each<[string, List, string]>([
    ['of another list', ['numbers', 'vowels'], cursor],
    ['of another filter', ['letters', 'consonants'], cursor],
    ['of no filter', ['letters'], cursor],
    ['of another position of the filter', ['letters', undefined, 'vowels'], cursor],
    ['that is truncated', list, cursor.slice(0, -1)],
    ['with an additional character', list, `${cursor}A`],
    ['with padding', list, `${cursor}=`],
    ['that is empty', list, ''],
    ['that is not from the server', list, 'bm9uc2Vuc2U'],
    ['with a character that no id contains', list, zero!],
  ])('a cursor %s is rejected', async (_, other, text) => {
    await expect(pageOf(LETTERS, other, 2, text)).rejects.toMatchObject({
      code: 'invalid_request',
      remedy: expect.stringContaining('omit the cursor') as string,
    });
  });
});
