import type { HaltFault } from '../../base/halt-faults.ts';
import type { BotDeploymentsTable } from '../../storage/tables.ts';
import type { HaltedOrder } from './end-sessions.ts';

export interface VerifiedOrder extends HaltedOrder {
  /**
   * Whether the order is no longer working and its cancellation is in the log of the bot; at an
   * exchange, whether the exchange has reported its end.
   */
  readonly verified: boolean;
}

export interface VerifiedDeployment extends Readonly<
  Pick<BotDeploymentsTable, 'deployment_id' | 'bot_id' | 'target' | 'task_id' | 'status'>
> {
  readonly verified: boolean;
  readonly faults: readonly HaltFault[];
  /** Orders that were working at the halt. */
  readonly orders: readonly VerifiedOrder[];
}
