import type { Log } from '../../../base/log.ts';
import { formatMismatches } from '../../holdings-check.ts';
import type { Decision } from '../../session-lifecycle.ts';
import type { DenyReason } from '../../venue.ts';

/** Logs a decision that people need to know. @param epoch of the session. */
export function logDecision(log: Log, decision: Decision, epoch: number): void {
  switch (decision.kind) {
    case 'claim_settled':
      if (decision.claim === 'fenced') {
        log.error('another instance has the claim: this one ends, and touches nothing');
      } else if (decision.claim === 'gone') {
        log.warn('the server does not know the deployment: open orders are canceled');
      }
      return;
    case 'input_decided': {
      const { input } = decision;
      if (input.kind === 'control.denying') logDenial(log, input.reason);
      else if (input.kind !== 'control.halted') log.info(`applied ${input.kind}`);
      return;
    }
    case 'mismatches_changed': {
      const { mismatches } = decision;
      if (mismatches.length === 0) log.info('the holdings at the venue match the session');
      else {
        log.warn(`the venue holds less than the session expects: ${formatMismatches(mismatches)}`);
      }
      return;
    }
    case 'latched': {
      const percent = (100 * decision.missingShare).toFixed(1);
      return log.error(`latched: ${percent} % of the equity is missing at the venue`);
    }
    case 'latch_lifted':
      return log.info('a person has lifted the latch');
    case 'superseded':
      return log.error(
        `order ${decision.client_order_id} at the venue has epoch ${decision.epoch}, and this runner ${epoch}: another runner trades for this deployment. This runner places no orders until \`service-local server adopt\` is run for its server`,
      );
    case 'ending_began':
      return log.info(`ending: ${decision.ending.outcome}`);
    default:
  }
}

function logDenial(log: Log, reason: DenyReason | null): void {
  if (reason === null) log.info('new orders are taken again');
  else log[reason === 'stopping' ? 'info' : 'warn'](`new orders are denied: ${reason}`);
}
