/** The turns with one model, and the answer that is being written. */
import { useEffect, useRef, useState } from "react";
import { ApiProblem } from "../../api/problem";
import { type Message, type Outcome, streamChat } from "./stream";

export interface Sampling {
  temperature: number;
  max_tokens: number;
}

export interface Turn {
  question: string;
  answer: string;
  model: string;
  outcome?: Outcome;
  problem?: ApiProblem;
  isStopped?: boolean;
}

export interface Side {
  model: string;
  turns: Turn[];
  isBusy: boolean;
  ask: (question: string) => void;
  stop: () => void;
  clear: () => void;
}

/** A turn that failed or was stopped is no part of what the model is told later. */
function history(system: string, turns: Turn[], question: string): Message[] {
  const told = turns.filter((turn) => turn.outcome).flatMap((turn): Message[] => [{ role: "user", content: turn.question }, { role: "assistant", content: turn.answer }]);
  return [...(system.trim() ? [{ role: "system" as const, content: system.trim() }] : []), ...told, { role: "user", content: question }];
}

export function useConversation(model: string, system: string, sampling: Sampling): Side {
  const [turns, setTurns] = useState<Turn[]>([]);
  const [isBusy, setBusy] = useState(false);
  const leaving = useRef<AbortController>(undefined);
  useEffect(() => () => leaving.current?.abort(), []);

  const change = (turn: (known: Turn) => Turn) => setTurns((known) => known.map((one, index) => (index === known.length - 1 ? turn(one) : one)));
  const answer = async (question: string) => {
    const controller = new AbortController();
    leaving.current = controller;
    setBusy(true);
    setTurns((known) => [...known, { question, answer: "", model }]);
    try {
      const outcome = await streamChat({ model, messages: history(system, turns, question), ...sampling }, (text) => change((turn) => ({ ...turn, answer: turn.answer + text })), controller.signal);
      change((turn) => ({ ...turn, outcome }));
    } catch (reason) {
      if (controller.signal.aborted) change((turn) => ({ ...turn, isStopped: true }));
      else if (reason instanceof ApiProblem) change((turn) => ({ ...turn, problem: reason }));
      else throw reason;
    } finally {
      setBusy(false);
    }
  };
  return { model, turns, isBusy, ask: (question) => void answer(question), stop: () => leaving.current?.abort(), clear: () => setTurns([]) };
}
