import type { ChatTurn } from '../api/research.ts';
import { ServiceError } from '../base/errors.ts';

/** Returns the turn. @throws ServiceError with the error of a failed turn */
export function requireAnswer(turn: ChatTurn): ChatTurn {
  if (turn.error === null) return turn;
  const { code, detail, reason, remedy } = turn.error;
  throw new ServiceError(code, detail, {
    ...(reason !== undefined && { reason }),
    remedy: `${remedy ?? ''} The session is ${turn.session_id}.`.trim(),
  });
}
