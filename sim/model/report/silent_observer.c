// An observer that is told and does nothing.
#include "sim/model/report/report.h"

static void silent_observer_on_enqueue(void *context, const mp_model_program_t *program,
                                       mp_moment_t moment) {
  (void)context, (void)program, (void)moment;
}

static void silent_observer_on_launch(void *context, const mp_model_program_t *program,
                                      uint32_t device, mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)begin, (void)end;
}

static void silent_observer_on_work(void *context, const mp_model_program_t *program,
                                    uint32_t device, uint32_t step, mp_moment_t begin,
                                    mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)step, (void)begin, (void)end;
}

static void silent_observer_on_meeting(void *context, const mp_model_program_t *program,
                                       uint32_t device, uint32_t collective, mp_moment_t arrival,
                                       mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)collective;
  (void)arrival, (void)begin, (void)end;
}

static void silent_observer_on_stream(void *context, const mp_model_program_t *program,
                                      uint32_t device, uint32_t collective, mp_moment_t begin,
                                      mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)collective, (void)begin, (void)end;
}

static void silent_observer_on_message(void *context, const mp_model_program_t *program,
                                       uint32_t device, uint32_t collective, bool is_send,
                                       uint32_t other, mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)collective;
  (void)is_send, (void)other, (void)begin, (void)end;
}

static void silent_observer_on_link(void *context, const mp_model_program_t *program, uint32_t link,
                                    double bytes, uint32_t collective, mp_moment_t begin,
                                    mp_moment_t end) {
  (void)context, (void)program, (void)link, (void)bytes, (void)collective, (void)begin, (void)end;
}

static void silent_observer_on_transfer(void *context, const mp_model_transfer_t *transfer,
                                        mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)transfer, (void)begin, (void)end;
}

mp_model_observer_t mp_report_silent_observer(void) {
  return (mp_model_observer_t){.on_enqueue = silent_observer_on_enqueue,
                               .on_launch = silent_observer_on_launch,
                               .on_work = silent_observer_on_work,
                               .on_meeting = silent_observer_on_meeting,
                               .on_stream = silent_observer_on_stream,
                               .on_message = silent_observer_on_message,
                               .on_link = silent_observer_on_link,
                               .on_transfer = silent_observer_on_transfer};
}
