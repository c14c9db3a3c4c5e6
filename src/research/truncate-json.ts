/** Characters kept of one string. */
const LONGEST_TEXT = 2000;
/** Characters of the brackets of a list or an object and the comma after it. */
const BRACKETS = 3;

/**
 * Copies JSON data and cuts it so that its JSON has about `most` characters. Long strings end in `…`,
 * and the last entries of lists and objects are dropped. List items are kept whole or dropped, except
 * the first one, which may be cut.
 */
export function truncateJson(
  value: unknown,
  most: number,
): { readonly data: unknown; readonly truncated: boolean } {
  let left = most;
  let isOver = false;
  let isCut = false;
  const fits = (cost: number): boolean => {
    if (cost > left) isOver = true;
    else left -= cost;
    return !isOver;
  };
  const copy = (one: unknown): unknown => {
    if (Array.isArray(one)) {
      const items: unknown[] = [];
      if (!fits(BRACKETS)) return undefined;
      for (const item of one as readonly unknown[]) {
        const kept = copy(item);
        if (isOver && items.length > 0) break;
        if (kept !== undefined) items.push(kept);
        if (isOver) break;
      }
      return items;
    }
    if (typeof one === 'object' && one !== null) {
      const members: [string, unknown][] = [];
      if (!fits(BRACKETS)) return undefined;
      for (const [name, member] of Object.entries(one)) {
        const kept = fits(name.length + 3) ? copy(member) : undefined;
        if (kept !== undefined) members.push([name, kept]);
        if (isOver) break;
      }
      return Object.fromEntries(members);
    }
    const isLong = typeof one === 'string' && one.length > LONGEST_TEXT;
    if (isLong) isCut = true;
    const text = isLong ? `${one.slice(0, LONGEST_TEXT)}…` : one;
    return fits((JSON.stringify(text) ?? '').length + 1) ? text : undefined;
  };
  const data = copy(value);
  return { data, truncated: isOver || isCut };
}
