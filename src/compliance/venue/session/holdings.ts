/** What an account has when the venue begins. */
export interface AccountSetup {
  readonly name: string;
  /** Currency. */
  readonly cash: number;
  /** By instrument, in its quantity unit; none where absent. */
  readonly positions?: Readonly<Record<string, number>>;
}

/** What an account holds, by its trades; whole numbers, so that no sum is ever inexact. */
export class Holdings {
  readonly setup: AccountSetup;
  /** By number of the instrument, quantity units. */
  readonly positions: Float64Array;
  /** Price × quantity units that were paid for them, less what was taken in. */
  readonly paid: Float64Array;

  constructor(setup: AccountSetup, instruments: readonly string[]) {
    this.setup = setup;
    this.positions = Float64Array.from(instruments, (name) => setup.positions?.[name] ?? 0);
    this.paid = new Float64Array(instruments.length);
  }

  /** @param quantity above 0 bought, below 0 sold. */
  book(instrument: number, price: number, quantity: number): void {
    this.positions[instrument]! += quantity;
    this.paid[instrument]! += price * quantity;
  }
}
