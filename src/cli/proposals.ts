import type { BotDetail, getBotVersionFiles } from '../api/bots.ts';
import { parseDocument } from '../bots/document.ts';
import type { Client } from '../client/client.ts';
import { ServiceError } from '../base/errors.ts';
import type { listBotEvents } from '../api/bot-state.ts';
import type { BotFile } from './bots.ts';

/** Fields of the payload of `chat.proposal` in use. */
interface Proposed {
  readonly proposal_id: string;
  readonly base_version: number;
  readonly document: Record<string, unknown>;
}

/**
 * Returns a proposal as a bot file, with the files of the version for which it was made.
 * @throws ServiceError `not_found`; `stale` if the bot has a newer version
 */
export async function proposedFile(
  server: Client,
  { id, slug, current_version }: BotDetail,
  proposal_id: string,
): Promise<BotFile> {
  const { base_version, document } = await findProposal(server, id, proposal_id);
  if (base_version !== current_version) {
    throw new ServiceError(
      'stale',
      `the proposal is for version ${base_version} of ${slug}, which is now at version ${current_version}`,
      { remedy: 'Ask for a new proposal with `service-local bots chat`.' },
    );
  }
  const { files } = await server.call<typeof getBotVersionFiles>(
    'get',
    '/bots/{bot_ref}/versions/{version}/files',
    { params: { bot_ref: id, version: String(base_version) } },
  );
  const file = `proposal ${proposal_id}`;
  return {
    file,
    slug,
    document,
    ...(Object.keys(files).length > 0 && { files }),
    source: parseDocument(JSON.stringify(document, undefined, 2), file),
  };
}

const KIND = 'chat.proposal';
/** Newest proposals among which one is searched; older ones are for former versions. */
const MOST_SEARCHED = 1000;

async function findProposal(
  server: Client,
  bot_ref: string,
  proposal_id: string,
): Promise<Proposed> {
  const { items } = await server.call<typeof listBotEvents>('get', '/bots/{bot_ref}/state/events', {
    params: { bot_ref },
    query: { kind: KIND, last: 'true', limit: MOST_SEARCHED },
  });
  for (const { payload } of items.toReversed()) {
    const proposal = payload as unknown as Proposed;
    if (proposal.proposal_id === proposal_id) return proposal;
  }
  throw new ServiceError('not_found', `the bot has no proposal ${JSON.stringify(proposal_id)}`, {
    remedy: `See \`service-local bots events ${bot_ref} --kind ${KIND} --json\`.`,
  });
}
