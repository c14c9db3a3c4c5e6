import type { Journal } from './journal.ts';

type Recorder = Pick<
  Journal,
  'count' | 'submitted' | 'booked' | 'triggered' | 'ended' | 'marginCall' | 'latched'
>;

/** Counts the events of a run whose journal is not needed. */
export class EventCounter implements Recorder {
  count = 0;

  submitted(): void {
    this.count += 1;
  }

  booked(): void {
    this.count += 1;
  }

  triggered(): void {
    this.count += 1;
  }

  ended(): void {
    this.count += 1;
  }

  marginCall(): void {
    this.count += 1;
  }

  latched(): void {
    this.count += 1;
  }
}
