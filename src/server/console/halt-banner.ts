import { html } from 'hono/html';
import type { Halt, listHalts } from '../../api/halts.ts';
import { ServiceError } from '../../base/errors.ts';
import { readBotNames, type BotNames } from './bot-names.ts';
import type { Call } from './call.ts';
import type { Html } from './html.ts';
import { time } from './parts.ts';

export const HALTS_PATH = '/console/halts';

/** Number of bots that the banner names. */
const NAMED = 3;
const READ = 100;

/** The halts in force, for every page; undefined if there are none. */
export async function readHaltBanner(call: Call): Promise<Html | undefined> {
  let halts: readonly Halt[];
  try {
    const query = { limit: READ };
    const { items } = await call<typeof listHalts>('get', '/halts', { query });
    halts = items.filter(({ lifted_at }) => lifted_at === null);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return frame(html`Cannot read whether bots are halted: ${error.message}.`);
  }
  if (halts.length === 0) return undefined;
  const all = halts.find(({ scope }) => scope === 'all');
  if (all !== undefined) {
    const { requested_at, reason } = all;
    return frame(
      html`<strong>All bots are halted</strong> since ${time(requested_at)}: ${reason}`,
      'Resume…',
    );
  }
  const named = halts.slice(0, NAMED);
  const names: BotNames = await readBotNames(
    call,
    named.map(({ bot_id }) => bot_id!),
  ).catch(() => new Map());
  const more = halts.length - named.length;
  const count = halts.length === READ ? `${READ} bots or more are` : `${halts.length} bots are`;
  const { requested_at, reason } = named[0]!;
  const links = named.map(({ bot_id }, i) => {
    const { slug, name } = names.get(bot_id!) ?? { slug: bot_id!, name: bot_id! };
    return html`${i > 0 && ', '}<a href="/console/bots/${slug}">${name}</a>`;
  });
  return halts.length === 1
    ? frame(
        html`<strong>Halted:</strong> ${links} since ${time(requested_at)}: ${reason}`,
        'Resume…',
      )
    : frame(
        html`<strong>${count} halted:</strong> ${links}${more > 0 && ` and ${more} more`}`,
        'See the halts',
      );
}

function frame(text: Html, action = 'See the halts'): Html {
  return html`<aside class="halted" aria-label="Halts in force">
    <p>${text}</p>
    <a class="button" href="${HALTS_PATH}">${action}</a>
  </aside>`;
}
