/** A paragraph of a legal act that the code or its output cites. */
export interface Article {
  /** Number within the act, such as `15(1)(a)`; criteria of Annex I are `I(1)(a)`. */
  readonly ref: string;
  readonly instrument: Instrument;
  /** A reminder in our own words, which does not replace the legal text. */
  readonly requirement: string;
}

type Instrument = keyof typeof INSTRUMENTS;

/** Full names of the acts. */
export const INSTRUMENTS = {
  MAR: 'Regulation (EU) No 596/2014 on market abuse',
  'MiFID II': 'Directive 2014/65/EU on markets in financial instruments',
  'Regulation 2017/565': 'Commission Delegated Regulation (EU) 2017/565',
  'RTS 6': 'Commission Delegated Regulation (EU) 2017/589',
  'RTS 7': 'Commission Delegated Regulation (EU) 2017/584',
  'RTS 9': 'Commission Delegated Regulation (EU) 2017/566',
} as const;

/** One paragraph per line: its number, then what it requires. */
const REQUIREMENTS: Readonly<Record<Instrument, string>> = {
  'RTS 6': `
1 Lines of accountability for algorithms are clear; trading desks are separate from control functions.
2(1) Compliance staff understand how the algorithms and trading systems work.
2(2) Compliance staff can at all times reach the holders of the kill function, or hold it themselves.
3 Enough staff with the skills for the systems, strategies and duties, trained and kept up to date.
4 The firm stays responsible for outsourced or purchased software and services, and keeps their documentation.
5(1) Methods of development and testing are in writing before a system, algorithm or strategy is deployed or substantially updated.
5(2) A person designated by senior management authorizes each deployment and substantial update.
5(3) The methods cover design, performance, record-keeping, approval and responsibilities.
5(4) The methods ensure that the algorithm, strategy or system meets the four points that follow.
5(4)(a) It does not behave in an unintended way.
5(4)(b) It meets the firm's duties under this regulation.
5(4)(c) It meets the rules and systems of the venues that it reaches.
5(4)(d) It does not add to disorderly trading, works under stress and can be switched off.
5(5) The methods fit each venue and market; a substantial change to system or access is tested again.
5(6) Paragraphs 2 to 5 apply only to algorithms that lead to order execution.
5(7) Records of each material software change state its time, its author, its approver and its nature.
6(1) Conformance is tested against the system of the venue or of the direct market access provider.
6(1)(a) Conformance is tested with the venue's system on access, on its material change, and before deployment or material update.
6(1)(b) Conformance is tested with the access provider's system on first access, on material change, and before deployment or material update.
6(2) The basic elements work correctly and as the venue or provider requires.
6(2)(a) The system interacts with the venue's matching logic as intended.
6(2)(b) The system processes the data flows downloaded from the venue adequately.
7(1) Tests run in an environment that is separated from production.
7(2) The environment may be the firm's own, a venue's, an access provider's or a vendor's.
7(3) The firm stays responsible for the testing, no matter who provides the environment.
8 Limits are set before deployment on the four points that follow.
8(a) A limit on the number of instruments traded is set before deployment.
8(b) Limits on the price, value and number of orders are set before deployment.
8(c) Limits on the positions of the strategy are set before deployment.
8(d) A limit on the number of venues is set before deployment.
9(1) A yearly self-assessment and validation results in a validation report.
9(1)(a) It covers the algorithmic trading systems, algorithms and strategies.
9(1)(b) It covers governance, accountability and approval.
9(1)(c) It covers business continuity.
9(1)(d) It covers compliance with Article 17 of MiFID II as a whole, for the nature, scale and complexity of the business.
9(2) Risk management writes the report with technical staff, and informs compliance of deficiencies.
9(3) Internal audit, where there is one, audits the report; senior management approves it.
9(4) Deficiencies found are remedied.
9(5) In a firm without a risk management function, another function does its work.
10 Systems, procedures and controls withstand increased order flow and market stress; the tests do not affect production.
10(a) The test runs at twice the highest number of messages received and sent in the previous six months.
10(b) The test runs at twice the highest trading volume of the previous six months.
11 A material change is reviewed in advance; traders in charge, compliance and risk management are informed of functional changes.
12 A kill function withdraws orders as an emergency measure.
12(1) Any or all unexecuted orders at any or all venues can be canceled at once.
12(2) The kill function also covers the orders of single traders, desks and clients.
12(3) Every order sent is attributable to its algorithm and its trader, desk or client.
13(1) All activity through the firm's systems, including that of clients, is monitored for signs of market manipulation.
13(2) The surveillance is automated and generates alerts and reports.
13(3) The surveillance covers all trading activity and all orders.
13(4) Signs are checked against the firm's other trading.
13(5) The surveillance adapts to changes in obligations and in trading.
13(6) The surveillance is reviewed at least yearly, for false alerts and for missed ones.
13(7) Records can be read, replayed and analyzed afterwards in detail; alerts are available by the next trading day, and follow-up actions are documented.
13(8) Signs are reported to compliance, which reports them to the venue or the authority.
13(9) The logs used for surveillance are reconciled as soon as practicable.
14(1) Business continuity arrangements suit the business and are kept in a durable medium.
14(2) The arrangements cover governance, adverse scenarios, relocation, training, use of the kill function, shutdown and open orders.
14(2)(e) The arrangements include a policy for the use of the kill function.
14(2)(f) The arrangements cover shutdown.
14(2)(g) The arrangements state how open orders and positions are managed after a shutdown.
14(3) A shutdown causes no disorder.
14(4) The arrangements are reviewed and tested yearly.
15(1) The four controls that follow apply to every order before it is sent.
15(1)(a) Price collars block or cancel orders outside set prices, per instrument, per order and over a period.
15(1)(b) A maximum order value keeps orders of unusual value out of the order book.
15(1)(c) A maximum order volume keeps orders of unusual size out of the order book.
15(1)(d) A maximum message rate limits how many orders, amendments and cancels are sent.
15(2) Every order sent counts immediately toward the limits.
15(3) After a set number of repeated automated executions the system is disabled until a designated person enables it again.
15(4) Limits on market and credit risk depend on capital, clearing, strategy, risk tolerance and experience.
15(5) Orders without permission for the instrument, or that endanger risk thresholds, are blocked or canceled.
15(6) A blocked order passes only as a temporary exception for a specific trade, verified by risk management and authorized by a designated person.
16(1) All activity under the trading code is monitored during all hours in which orders are sent.
16(2) The trader in charge monitors, and so does risk management or an independent function.
16(3) Staff respond to problems in time.
16(4) Authority, venues, clearers and access providers can reach staff at all times; the channels are tested.
16(5) Alerts on unexpected activity and on circuit breakers are raised within five seconds of the event.
17(1) Post-trade controls run continuously and lead to action.
17(2) They assess market and credit risk as effective exposure.
17(3) Records are complete and are reconciled with venues, brokers and clearers, in real time where their data allow it.
17(4) For derivatives, the maximum long, short and overall positions of a strategy are controlled.
17(5) The controls are carried out by the traders in charge and by risk control.
18(1) An IT strategy with defined objectives and measures is in place and followed.
18(4) Penetration tests and vulnerability scans are made yearly.
18(5) Users of critical access rights are known, restricted and logged.
28(3) Records of high-frequency orders are kept for five years.
I(1)(a) Nature: regulatory status of the firm and of its clients with direct access.
I(1)(b) Nature: roles in the market, such as market making or execution for clients.
I(1)(c) Nature: level of automation.
I(1)(d) Nature: instruments traded, and their status.
I(1)(e) Nature: types of strategy and their risks.
I(1)(f) Nature: sensitivity of the strategies to latency.
I(1)(g) Nature: venues, by kind.
I(1)(h) Nature: connectivity, as member, as client or as provider of direct access.
I(1)(i) Nature: reliance on third parties.
I(1)(j) Nature: ownership and structure of the firm.
I(1)(k) Nature: how risk management, compliance and audit are set up.
I(1)(l) Nature: date of establishment and experience of staff.
I(2)(a) Scale: algorithms and strategies that run at the same time.
I(2)(b) Scale: instruments, products and asset classes.
I(2)(c) Scale: desks, and identifiers of people and algorithms.
I(2)(d) Scale: messaging capacity; orders submitted, adjusted, canceled and executed.
I(2)(e) Scale: gross and net positions, within the day and overnight.
I(2)(f) Scale: markets accessed.
I(2)(g) Scale: clients, and those with direct access.
I(2)(h) Scale: sites of co-location.
I(2)(i) Scale: throughput of the connections.
I(2)(j) Scale: memberships in clearing and central counterparties.
I(2)(k) Scale: staff by office.
I(2)(l) Scale: physical locations.
I(2)(m) Scale: countries of trading.
I(2)(n) Scale: annual earnings and profits.
I(3)(a) Complexity: nature of the strategies, correlated instruments, several venues.
I(3)(b) Complexity: coding, inputs, dependencies and exceptions to rules.
I(3)(c) Complexity: diversity of the trading systems, and control over them.
I(3)(d) Complexity: structure of the firm.
I(3)(e) Complexity: diversity of connectivity, technology and clearing.
I(3)(f) Complexity: diversity of the physical infrastructure.
I(3)(g) Complexity: level of outsourcing.
I(3)(h) Complexity: direct access provided or used.
I(3)(i) Complexity: speed of trading.
`,
  'RTS 7': `
9(3) A venue's conformance test covers the three points that follow.
9(3)(a) The matching logic and the data flows in both directions work as intended.
9(3)(b) Entering, amending and canceling orders, downloading static and market data, and all business data flows work.
9(3)(c) Connectivity works: cancel on disconnect, loss of market data, throttling, recovery, resumption of trading, suspended instruments and data that are not updated.
9(5) The venue reports the result of a conformance test to the member.
9(6) Members use the venue's own facility for conformance testing.
11(1) A venue can process twice the highest number of messages per second of the last five years.
11(3) A venue assesses its capacity again when it reaches a new peak.
18(2)(c)(i) A venue can cancel orders at the request of a member that cannot cancel them itself.
20 A venue has pre-trade controls of price, value and volume, and monitors orders with little delay.
`,
  'RTS 9': `
1(a) Cancels after use of the kill function, an uncrossing or a lost connection do not count in the ratio of orders to trades.
1(c) Volume is counted in the natural unit of the instrument.
`,
  'MiFID II': `
17 Obligations of firms that trade algorithmically.
`,
  'Regulation 2017/565': `
19(1) Message rates above which trading counts as having a high message intraday rate.
`,
  MAR: `
16 Suspicious orders and transactions are reported to the authority.
`,
};

/** Every paragraph that the compliance code or its output cites, in the order of `REQUIREMENTS`. */
export const ARTICLES: readonly Article[] = Object.entries(REQUIREMENTS).flatMap(
  ([instrument, lines]) =>
    lines
      .trim()
      .split('\n')
      .map((line) => {
        const [ref = '', ...words] = line.split(' ');
        return { ref, instrument: instrument as Instrument, requirement: words.join(' ') };
      }),
);

const byCitation = new Map(ARTICLES.map((each) => [cite(each), each]));

/** Names a paragraph as code and output cite it: `15(3)` for RTS 6, `RTS 7 9(3)(b)` for another act. */
export function cite({ ref, instrument }: Pick<Article, 'instrument' | 'ref'>): string {
  return instrument === 'RTS 6' ? ref : `${instrument} ${ref}`;
}

/**
 * Finds the paragraph that a citation such as `15(3)`, `RTS 6 15(3)` or `RTS 7 9(3)(b)` names.
 *
 * @throws Error if the table has no such paragraph, which is a bug in the program.
 */
export function article(citation: string): Article {
  const found = byCitation.get(citation.replace(/^RTS 6 /, ''));
  if (found === undefined) throw new Error(`no paragraph ${citation} in the table of articles`);
  return found;
}
