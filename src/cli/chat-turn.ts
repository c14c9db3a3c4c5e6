import type { ChatTurn } from '../api/research.ts';
import { errorFromProblem } from '../client/problem.ts';

/** Returns the turn. @throws ServiceError with the error of a failed turn */
export function requireAnswer(turn: ChatTurn): ChatTurn {
  if (turn.error === null) return turn;
  const remedy = `${turn.error.remedy ?? ''} The session is ${turn.session_id}.`.trim();
  throw errorFromProblem({ ...turn.error, remedy });
}
