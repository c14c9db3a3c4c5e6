import type { Log } from '../../../base/log.ts';
import { formatMismatches } from '../../holdings-check.ts';
import type { Decision } from '../../session-lifecycle.ts';
import type { SessionInput } from '../../session-events.ts';

/** Logs a decision that concerns operators. @param epoch of the session. */
export function logDecision(log: Log, decision: Decision, epoch: number): void {
  const { kind } = decision;
  if (kind === 'claim_settled' && decision.claim === 'fenced') {
    log.error('another instance holds the claim: this one ends without canceling orders');
  } else if (kind === 'claim_settled' && decision.claim === 'gone') {
    log.warn('the server does not know the deployment: open orders are canceled');
  } else if (kind === 'input_decided') logInput(log, decision.input);
  else if (kind === 'mismatches_changed' && decision.mismatches.length === 0) {
    log.info('the holdings at the venue match the session');
  } else if (kind === 'mismatches_changed') {
    const text = formatMismatches(decision.mismatches);
    log.warn(
      `the venue holds less than the session expects (${text}): new orders are denied. Compare the trades of the account with \`service-local bots events\`. Return what was withdrawn or sold. If the venue has undone a trade, stop the deployment and deploy the bot again`,
    );
  } else if (kind === 'latched') {
    const percent = (100 * decision.share).toFixed(1);
    log.error(
      `latched: ${percent} % of the equity is missing at the venue. Once the holdings match again, \`service-local bots re-enable\` lifts the latch`,
    );
  } else if (kind === 'latch_lifted') log.info('a person has lifted the latch');
  else if (kind === 'superseded') {
    log.error(
      `order ${decision.client_order_id} at the venue has epoch ${decision.epoch}, and this runner ${epoch}: another runner trades for this deployment. This runner places no orders until \`service-local server adopt\` is run for its server`,
    );
  } else if (kind === 'ending_began') log.info(`ending: ${decision.ending.outcome}`);
}

function logInput(log: Log, input: SessionInput): void {
  if (input.kind === 'control.halted') return;
  if (input.kind !== 'control.denying') log.info(`applied ${input.kind}`);
  else if (input.reason === null) log.info('new orders are accepted again');
  else {
    const level = input.reason === 'stopping' ? 'info' : 'warn';
    log[level](`new orders are denied: ${input.reason}`);
  }
}
