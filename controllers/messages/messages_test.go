package messages

import (
	"strings"
	"testing"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "..."},
		{"abcdefgh", 7, "abcd..."},
		{"añañañ", 7, "aña..."}, // a letter is not split
	} {
		got := Cut(tc.text, tc.limit)
		if got != tc.want || len(got) > tc.limit || !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}

func TestSendCutsNotes(t *testing.T) {
	r := events.NewFakeRecorder(2)
	Send(r, &corev1.Pod{}, []Event{
		{corev1.EventTypeWarning, "Broken", "Run", "100% of it"},
		{corev1.EventTypeNormal, "Long", "Run", strings.Repeat("x", 2*MaxNote)},
	})
	if got := <-r.Events; got != "Warning Broken 100% of it" {
		t.Errorf("event %q", got)
	}
	if got := <-r.Events; got != "Normal Long "+strings.Repeat("x", MaxNote-3)+"..." {
		t.Errorf("event of %d bytes: %.40q", len(got), got)
	}
}

func pod(change func(*corev1.PodStatus)) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name = "p-0"
	change(&p.Status)
	return p
}

func container(s corev1.ContainerState) func(*corev1.PodStatus) {
	return func(p *corev1.PodStatus) { p.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: s}} }
}

func waiting(reason, message string) func(*corev1.PodStatus) {
	return container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func ended(code int32, log string) func(*corev1.PodStatus) {
	return container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: log}})
}

func scheduled(is corev1.ConditionStatus, message string) func(*corev1.PodStatus) {
	return func(p *corev1.PodStatus) {
		p.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: is, Message: message}}
	}
}

func TestPods(t *testing.T) {
	well := pod(func(*corev1.PodStatus) {})
	crashing := pod(waiting("CrashLoopBackOff", "back-off 10s"))
	crashing.Status.ContainerStatuses[0].RestartCount = 3
	crashing.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Message: "usage:\nunknown flag\n"}
	for _, tc := range []struct {
		name             string
		pod              *corev1.Pod
		trouble, failure string
	}{
		{"none", nil, "", ""},
		{"well", well, "", ""},
		{"not scheduled", pod(scheduled(corev1.ConditionFalse, "0/3 nodes are available")), ". Pod p-0: 0/3 nodes are available", ""},
		{"scheduled", pod(scheduled(corev1.ConditionTrue, "")), "", ""},
		{"starts", pod(waiting("ContainerCreating", "")), "", ""},
		{"no image", pod(waiting("ImagePullBackOff", "not found")), ". Pod p-0: ImagePullBackOff: not found", ""},
		{"without a message", pod(waiting("CrashLoopBackOff", "")), ". Pod p-0: CrashLoopBackOff", ""},
		{"crash loop", crashing, ". Pod p-0: CrashLoopBackOff: back-off 10s; c ended with exit code 2, restarts: 3, last line: unknown flag", ""},
		{"long", pod(waiting("R", strings.Repeat("x", 600))), ". Pod p-0: R: " + strings.Repeat("x", maxQuote-6) + "...", ""},
		{"done", pod(ended(0, "fine")), "", ""},
		{"gave up", pod(ended(3, "started\nno route to the grid\n")), ". Pod p-0: c ended with exit code 3, last line: no route to the grid", ". Pod p-0 ended with exit code 3: no route to the grid"},
		{"exited without a message", pod(ended(137, "")), ". Pod p-0: c ended with exit code 137", ". Pod p-0 ended with exit code 137: "},
		{"evicted", pod(func(s *corev1.PodStatus) { s.Reason, s.Message = "Evicted", "low on memory" }), "", ". Pod p-0: Evicted: low on memory"},
	} {
		if got := PodTrouble(tc.pod); got != tc.trouble {
			t.Errorf("%s: trouble %q, want %q", tc.name, got, tc.trouble)
		}
		if got := PodFailure(tc.pod); got != tc.failure {
			t.Errorf("%s: failure %q, want %q", tc.name, got, tc.failure)
		}
	}
	if got := First([]corev1.Pod{*well, *pod(waiting("A", "a")), *pod(waiting("B", "b"))}, PodTrouble); got != ". Pod p-0: A: a" {
		t.Errorf("first trouble %q", got)
	}
}

func TestJobFailure(t *testing.T) {
	job := &batchv1.Job{}
	job.Name = "j"
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
	if got := JobFailure(job) + JobFailure(nil); got != "" {
		t.Errorf("of a job that has not failed: %q", got)
	}
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "too slow"})
	if got := JobFailure(job); got != ". Job j: too slow" {
		t.Errorf("of one that has: %q", got)
	}
}
