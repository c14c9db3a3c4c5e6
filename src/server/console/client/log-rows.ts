import type { BotEvent } from '../../../api/bot-state.ts';

/**
 * The lines of a `strategy.log` event as rows of a table, newest first. Runs both on the server and in the
 * browser.
 */
export function logRows(
  { occurred_at, payload }: Pick<BotEvent, 'occurred_at' | 'payload'>,
  isDaily: boolean,
): string[][] {
  const bar = isDaily
    ? occurred_at.slice(0, 10)
    : occurred_at.replace('T', ' ').replace(/(\.\d+)?Z$/, '');
  const { lines } = payload as { readonly lines: readonly string[] };
  return lines.map((line) => [bar, line]).toReversed();
}
