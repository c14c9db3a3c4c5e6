import type { BotEvent, listBotEvents, streamBotEvents } from '../../../api/bot-state.ts';
import type { Client } from '../../../client/client.ts';
import { closest } from '../../../base/closest.ts';
import { formatCountOf } from '../../../base/format.ts';
import { readEvents } from '../../bot-events.ts';
import { BOT_ARGUMENT, findBot } from '../../bots.ts';
import { followStream } from '../../follow-stream.ts';
import { parseCount } from '../../parse-count.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineServerVerb } from '../../server-verb.ts';
import type { Context } from '../../verb.ts';

const LAST = 50;

export const verb = defineServerVerb({
  summary: 'show the events of a bot',
  description: `Shows the last ${LAST} matching events, or all events after --after-seq, oldest first. With --follow, continues with new events until Ctrl-C; with --follow --json, prints one JSON object per line.`,
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
      // Following by id, because the slug may move to another bot.
      const { id } = (await findBot(server, bot_ref)).answer;
      const cells = Object.values(EVENT_COLUMNS);
      const stream = followEvents(server, context, id, { ...wanted, after_seq: first });
      return {
        data: null,
        stream,
        async show(out) {
          for await (const event of stream) {
            // A reader such as `head` has closed the pipe.
            if (context.io.stdout.errored) return;
            out.line(cells.map((cell) => cell(event)).join('  '));
          }
        },
      };
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

interface Wanted {
  readonly kind: string | undefined;
  readonly run_id: string | undefined;
}

/** Returns the sequence number before the last events. */
async function findStart(
  server: Client,
  context: Context,
  bot_ref: string,
  wanted: Wanted,
): Promise<number> {
  const { items, head_seq, archived_seq } = await server.call<typeof listBotEvents>(
    'get',
    '/bots/{bot_ref}/state/events',
    { params: { bot_ref }, query: { ...wanted, last: 'true', limit: LAST } },
  );
  if (archived_seq > 0) context.message(`Events 1 to ${archived_seq} are archived.`);
  return items.length === 0 ? head_seq : items[0]!.seq - 1;
}

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
    context.message(
      `None of the last ${formatCountOf(items.length, 'event')} is a '${kind}'` +
        (similar === undefined ? '.' : `; did you mean '${similar}'?`),
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

async function* followEvents(
  server: Client,
  context: Context,
  bot_ref: string,
  query: Wanted & { readonly after_seq: number },
): AsyncGenerator<BotEvent, void, void> {
  const path = '/bots/{bot_ref}/state/events/stream';
  const stream = followStream(
    (headers) =>
      server.stream<typeof streamBotEvents>(path, { params: { bot_ref }, query, headers }),
    context,
  );
  for await (const data of stream) yield JSON.parse(data) as BotEvent;
}
