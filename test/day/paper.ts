/** Invariants of the paper sessions of a simulated day. */
import { MINUTE } from '../../src/base/durations.ts';
import type { World } from './world.ts';

interface PaperRow {
  readonly task_id: string;
  readonly slug: string;
  readonly status: string;
  readonly ended_at: number | null;
  readonly state: string;
}

interface EventRow {
  readonly kind: string;
  readonly payload: string;
}

/** Sessions of the bots that have not ended. */
export function openPaper(world: World, slugs: readonly string[]): readonly PaperRow[] {
  return readPaper(world).filter(({ slug, ended_at }) => ended_at === null && slugs.includes(slug));
}

/** Each session takes each bar once and gives each order one number, whichever worker runs it. */
export function checkPaper(world: World): void {
  for (const { task_id, status, state } of readPaper(world)) {
    const violate = (what: string): void => world.violate(`paper session ${task_id} ${what}`);
    if (status === 'failed') violate('has failed');
    const { working } = JSON.parse(state) as { readonly working: readonly unknown[] };
    if (working.length > 0) violate('has ended with working orders');
    const events = world.records.all(
      'select kind, payload from bot_events where run_id = ? order by seq',
      task_id,
    ) as readonly EventRow[];
    const payloads = (of: string): readonly string[] =>
      events.filter(({ kind }) => kind === of).map(({ payload }) => payload);
    const times = payloads('data.bars').map((one) =>
      Date.parse((JSON.parse(one) as { readonly time: string }).time),
    );
    if (times.some((time, at) => at > 0 && time !== times[at - 1]! + MINUTE)) {
      violate('has lost or repeated a bar');
    }
    const orders = payloads('order.submitted');
    if (new Set(orders).size < orders.length) violate('has submitted an order twice');
    if (events.findIndex(({ kind }) => kind === 'run.ended') < events.length - 1) {
      violate('continues after its end');
    }
    world.note(`paper ${task_id} ${status}: ${times.length} bars, ${orders.length} orders`);
  }
}

function readPaper({ records }: World): readonly PaperRow[] {
  return records.all(
    `select tasks.task_id, bots.slug, tasks.status, tasks.ended_at, s.state
     from tasks join bots on bots.bot_id = tasks.bot_id
     join trading_sessions s on s.task_id = tasks.task_id
     where tasks.kind = 'paper' order by tasks.task_id`,
  ) as readonly PaperRow[];
}
