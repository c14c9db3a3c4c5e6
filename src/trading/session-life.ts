import type { ServiceError } from '../base/errors.ts';
import type { SessionStatus } from '../events/session-state.ts';
import { newHoldingsCheck, type HoldingsCheck } from './holdings-check.ts';
import type { SessionSupervision, SupervisedState } from './session-supervision.ts';
import type { DenyReason } from '../engine/orders/order.ts';

/** State of the life of a hosted session: plain data. */
export interface SessionLife {
  /** Whether orders go to a venue, whose orders and holdings are then compared with the session. */
  readonly isAtVenue: boolean;
  /**
   * `settled`: the server has answered, or none supervises the session; `gone`: the server does not
   * know the deployment; `fenced`: another instance has the claim.
   */
  readonly claim: 'awaited' | 'settled' | 'gone' | 'fenced';
  readonly stage: Stage;
  /** Reason for which the session denies new orders. */
  readonly denying: DenyReason | null;
  /** Newest supervision by the server. */
  readonly supervision: SessionSupervision | undefined;
  readonly holdings: HoldingsCheck;
  /** Newest epoch seen in an order of another runner; 0 if none was seen. */
  readonly foreignEpoch: number;
  /** Whether the newest bars were too old to trade by. */
  readonly isStale: boolean;
  /** The session is ahead of its journal: nothing more of it may be recorded or sent. */
  readonly isBroken: boolean;
  /** The server has recorded more than the journal: the session must not be restored. */
  readonly isLost: boolean;
  readonly ending: Ending | undefined;
  /**
   * Whether the venue confirmed that no order is open, and the journal records that; undefined before
   * the end.
   */
  readonly verified: boolean | undefined;
}

/** `reconciling` ends with the first comparison of holdings, `connecting` with the first feed. */
export type Stage = 'restoring' | 'reconciling' | 'connecting' | 'trading';

export interface Ending {
  readonly outcome: 'finished' | 'stopped' | 'halted' | 'failed';
  /** Whether the deployment has ended for good; else another process may resume it. */
  readonly isFinal: boolean;
  readonly error?: ServiceError | undefined;
}

/** Observations of the host at the time of an event. */
export interface Facts {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly isLicensed: boolean;
  /** Whether the claim was renewed recently enough to trade by it. */
  readonly isClaimFresh: boolean;
  /** Undefined until the session is restored. */
  readonly session:
    | {
        readonly status: SessionStatus;
        readonly hasWorkingOrders: boolean;
        readonly supervised: SupervisedState;
      }
    | undefined;
}

/** @param latches count of recorded latches because the venue held too little. */
export function newLife(isAtVenue: boolean, latches: number): SessionLife {
  return {
    isAtVenue,
    claim: 'awaited',
    stage: 'restoring',
    denying: null,
    supervision: undefined,
    holdings: newHoldingsCheck(latches),
    foreignEpoch: 0,
    isStale: false,
    isBroken: false,
    isLost: false,
    ending: undefined,
    verified: undefined,
  };
}
