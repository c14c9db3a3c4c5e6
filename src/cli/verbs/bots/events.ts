import type { BotEvent, listBotEvents } from '../../../api/bot-state.ts';
import type { Client } from '../../../client/client.ts';
import { closest } from '../../../base/closest.ts';
import { formatCountOf } from '../../../base/format.ts';
import { findStart, followAnswer, LAST_EVENTS, readEvents } from '../../bot-events.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { parseCount } from '../../parse-count.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineServerVerb } from '../../server-verb.ts';
import type { Context } from '../../verb.ts';

export const verb = defineServerVerb({
  summary: 'show the events of a bot',
  description: `Shows the last ${LAST_EVENTS} matching events, or all events after --after-seq, oldest first. With --follow, continues with new events until Ctrl-C; with --follow --json, prints one JSON object per line.`,
  arguments: { bot: BOT_ARGUMENT },
  options: {
    afterSeq: {
      value: 'seq',
      description: 'show all events after this sequence number',
      parse: parseCount,
    },
    kind: {
      value: 'kind',
      description: 'only events of this kind, such as version.created; repeat it for several',
      repeat: true,
    },
    run: { value: 'task', description: 'only events of this run' },
    follow: { description: 'continue with new events', streams: true },
  },
  examples: [
    'bots events sma-crossover',
    'bots events sma-crossover --after-seq 0 --kind version.created --json',
    'bots events sma-crossover --run 0198c0de-0000-7000-8000-00000000dddd',
    'bots events sma-crossover --follow --json | jq -c .payload',
  ],
  async run(server, { bot: bot_ref }, { afterSeq, kind: kinds, run: run_id, follow }, context) {
    const wanted = { kind: kinds.length > 0 ? kinds.join(',') : undefined, run_id };
    const first = afterSeq ?? (await findStart(server, context, bot_ref, wanted));
    if (follow) {
      const cells = Object.values(EVENT_COLUMNS);
      const linesOf = (event: BotEvent) => [cells.map((cell) => cell(event)).join('  ')];
      return followAnswer(server, context, bot_ref, { ...wanted, after_seq: first }, linesOf);
    }
    const events = await Array.fromAsync(
      readEvents(server, bot_ref, { ...wanted, after_seq: first }),
    );
    if (events.length === 0) await nameUnknownKinds(server, context, bot_ref, kinds);
    return {
      data: { events },
      show: (out) => showItems(out, events, EVENT_COLUMNS),
    };
  },
});

/** Number of last events whose kinds are compared with a kind that matched nothing. */
const COMPARED = 1000;

/** Says which of the kinds the last events do not have, as a kind may be misspelled. */
async function nameUnknownKinds(
  server: Client,
  context: Context,
  bot_ref: string,
  kinds: readonly string[],
): Promise<void> {
  if (kinds.length === 0) return;
  const { items } = await server.call<typeof listBotEvents>('get', '/bots/{bot_ref}/state/events', {
    params: { bot_ref },
    query: { last: 'true', limit: COMPARED },
  });
  const recorded = new Set(items.map(({ kind }) => kind));
  for (const kind of kinds.filter((one) => !recorded.has(one))) {
    const similar = closest(kind, recorded);
    const none =
      items.length === 1
        ? 'The only event is not'
        : `None of the last ${formatCountOf(items.length, 'event')} is`;
    context.message(
      `${none} a '${kind}'` + (similar === undefined ? '.' : `; did you mean '${similar}'?`),
    );
  }
}

const EVENT_COLUMNS: Columns<BotEvent> = {
  seq: ({ seq }) => String(seq),
  time: ({ recorded_at }) => recorded_at,
  version: ({ version }) => `v${version}`,
  kind: ({ kind }) => kind,
  payload: ({ payload }) => JSON.stringify(payload),
};
