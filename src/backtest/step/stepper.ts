import { ServiceError } from '../../base/errors.ts';
import type { Command } from './commands.ts';
import { isTrue, parseExpression, type Reader } from './expression.ts';
import type { StepState, SteppedRun } from './stepped-run.ts';

interface Breakpoint {
  readonly number: number;
  readonly expression: string;
  readonly isHit: Reader;
}

/** Result of a command. */
export type Reply =
  | {
      readonly state: StepState;
      /** Why the run stopped here; null at its end, and for `show`. */
      readonly stopped_by: string | null;
      /** Target that the command did not find up to the end; null if it found it. */
      readonly not_found: string | null;
      readonly finished: boolean;
    }
  | { readonly breakpoints: readonly Pick<Breakpoint, 'number' | 'expression'>[] }
  | { readonly expression: string; readonly value: number | null };

/** The position of a user in a finished run, and the breakpoints. */
export class Stepper {
  readonly #run: SteppedRun;
  #step = 0;
  #breakpoints: Breakpoint[] = [];
  #created = 0;

  /** @param run with at least one step; the position is its first. */
  constructor(run: SteppedRun) {
    this.#run = run;
  }

  /** Whether the position is the last step of the run. */
  get isFinished(): boolean {
    return this.#step === this.#run.length - 1;
  }

  /** @throws ServiceError `usage` for an expression that is wrong, or a breakpoint that does not exist */
  take(command: Exclude<Command, { kind: 'help' | 'quit' }>): Reply {
    switch (command.kind) {
      case 'show':
        return this.#reply();
      case 'next':
        return this.#next(command.what, command.count);
      case 'until': {
        const { expression } = command;
        const read = parseExpression(expression, this.#run.find);
        return this.#go(
          (step) => (isTrue(read(step)) ? expression : undefined),
          `a bar with ${expression}`,
        );
      }
      case 'continue':
        return this.#go(
          (step) => this.#hitAt(step),
          this.#breakpoints.length === 0 ? undefined : 'a bar with a breakpoint',
        );
      case 'break':
        return this.#break(command.expression);
      case 'delete':
        return this.#delete(command.number);
      case 'breaks':
        return this.#listed();
      case 'print': {
        const value = parseExpression(command.expression, this.#run.find)(this.#step);
        return { expression: command.expression, value: Number.isFinite(value) ? value : null };
      }
      default:
        return command satisfies never;
    }
  }

  #next(what: 'bar' | 'order' | 'fill', count: number): Reply {
    let left = count;
    const kind = what === 'fill' ? 'order.filled' : 'order.submitted';
    return this.#go(
      (step) => {
        const isFound = what === 'bar' || this.#run.kindsAt(step).includes(kind);
        if (isFound) left -= 1;
        return left === 0 ? `next ${what}` : undefined;
      },
      count === 1 ? `a further ${what}` : `${count} further ${what}s`,
    );
  }

  /**
   * Moves forward until `stopAt` returns the reason to stop, or the run ends.
   *
   * @param wanted what `stopAt` looks for
   */
  #go(stopAt: (step: number) => string | undefined, wanted?: string): Reply {
    while (!this.isFinished) {
      this.#step += 1;
      const reason = stopAt(this.#step);
      if (reason !== undefined) return this.#reply({ stopped_by: reason });
    }
    return this.#reply({ not_found: wanted });
  }

  #hitAt(step: number): string | undefined {
    return this.#breakpoints.find(({ isHit }) => isTrue(isHit(step)))?.expression;
  }

  #break(expression: string): Reply {
    const isHit = parseExpression(expression, this.#run.find);
    this.#created += 1;
    this.#breakpoints.push({ number: this.#created, expression, isHit });
    return this.#listed();
  }

  #delete(number: number): Reply {
    const kept = this.#breakpoints.filter((one) => one.number !== number);
    if (kept.length === this.#breakpoints.length) {
      throw new ServiceError('usage', `breakpoint ${number} does not exist`, {
        remedy: 'Enter breaks for a list of the breakpoints.',
      });
    }
    this.#breakpoints = kept;
    return this.#listed();
  }

  #listed(): Reply {
    return {
      breakpoints: this.#breakpoints.map(({ number, expression }) => ({ number, expression })),
    };
  }

  #reply({ stopped_by, not_found }: { stopped_by?: string; not_found?: string | undefined } = {}) {
    return {
      state: this.#run.stateAt(this.#step),
      stopped_by: stopped_by ?? null,
      not_found: not_found ?? null,
      finished: this.isFinished,
    };
  }
}
