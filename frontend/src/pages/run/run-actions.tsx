/** What a run's owner may ask for in its present state, each with a question first. */
import type { Run } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { ConfirmButton } from "../../design/dialog";
import { type Verb, ask, isElsewhere } from "./use-run";

interface Offer {
  states: string[];
  title: string;
  text: string;
  isDanger?: boolean;
}

const OFFERS: Record<Verb, Offer> = {
  pause: {
    states: ["QUEUED", "RUNNING"],
    title: "Pause this run?",
    text: "It writes a checkpoint and gives its place back. Rollouts in flight are dropped and not billed. You can resume it at any time.",
  },
  resume: { states: ["PAUSED"], title: "Resume this run?", text: "It waits for a place and goes on behind its newest step." },
  restart: {
    states: ["FAILED", "STOPPED"],
    title: "Restart this run?",
    text: "It goes on from its newest checkpoint. Steps that are taken again are charged again, because you ask for them.",
  },
  stop: {
    states: ["QUEUED", "PENDING", "RUNNING", "PAUSING", "PAUSED"],
    title: "Stop this run?",
    text: "It finishes the step it is at, keeps its newest adapter and ends. What was done so far is charged.",
    isDanger: true,
  },
};
const STOP_ELSEWHERE: Offer = { ...OFFERS.stop, text: "It takes no more reports. The trainer itself, which is not ours, goes on until somebody ends it there." };

export function RunActions({ run, onDone }: { run: Run; onDone: () => void }) {
  const verbs = isElsewhere(run) ? (["stop"] as const) : (Object.keys(OFFERS) as Verb[]);
  const offered = verbs.filter((verb) => OFFERS[verb].states.includes(run.status) && !run.stopRequested);
  return offered.map((verb) => <Offered key={verb} verb={verb} run={run} onDone={onDone} />);
}

function Offered({ verb, run, onDone }: { verb: Verb; run: Run; onDone: () => void }) {
  const { title, text, isDanger } = isElsewhere(run) ? STOP_ELSEWHERE : OFFERS[verb];
  const label = verb.charAt(0).toUpperCase() + verb.slice(1);
  const action = useAction(() => ask(verb, run.id), onDone);
  return <ConfirmButton label={label} title={title} confirm={`${label} it`} action={action} isDanger={isDanger}><p>{text}</p></ConfirmButton>;
}
