import { thisMoment } from '../../base/elapsed.ts';
import {
  eventOfAnswer,
  type connectToServer,
  type ServerConnection,
} from '../../trading/host/pod/server-connection.ts';
import type { TimedPermit } from '../../trading/session-supervision.ts';

type Answer = NonNullable<Awaited<ReturnType<ServerConnection['end']>>>;

/** A claim lasts 60 s; a session trades for two thirds of it without an answer of the server. */
const CLAIM_MS = 40_000;

/** The server that supervises the session: grants the claim and sends commands and permits. */
export class ControlServer {
  isReachable = true;
  #command: Answer['command'] = 'trade';
  readonly #permits: TimedPermit[] = [];
  #publish = (): void => {};

  /** Sends a command that a person has given. */
  command(command: 'halt' | 'stop'): void {
    this.#command = command;
    this.#publish();
  }

  /** Passes a permit, approved by two people, to the session. */
  permit(permit: TimedPermit): void {
    this.#permits.push(permit);
    this.#publish();
  }

  readonly connect: typeof connectToServer = ({ onEvent }) => {
    this.#command = 'trade';
    /** Virtual time of the last answer: `thisMoment` would read the uptime of the machine each time. */
    let answeredAt = Date.now();
    this.#publish = () => onEvent(eventOfAnswer(this.#answer()));
    this.#publish();
    return {
      mayTrade: () => {
        if (this.isReachable) answeredAt = Date.now();
        return Date.now() - answeredAt < CLAIM_MS;
      },
      get answeredAt() {
        return thisMoment();
      },
      hasClaim: true,
      report() {},
      end: async () => (this.isReachable ? this.#answer() : undefined),
    };
  };

  #answer(): Answer {
    const isHalt = this.#command === 'halt';
    return {
      epoch: 1,
      claim_seconds: 60,
      report_seconds: 5,
      command: this.#command,
      halt: isHalt
        ? { halt_id: 'h1', scope: 'bot', reason: 'conformance', by: 'administrator:case' }
        : null,
      recorded: 0,
      controls: {
        thresholds: {},
        permits: this.#permits.map((one) => ({ ...one, controls: [...one.controls] })),
        latches_lifted: 0,
      },
    };
  }
}
